//! The generated blocks of a page.

const BEGIN: &str = "<!-- begin generated:";
const END: &str = "<!-- end generated -->";

/// Returns a page with its generated blocks filled. The rest stays unchanged.
///
/// A block is the text between the lines `<!-- begin generated: WHAT -->` and
/// `<!-- end generated -->`. `generate` makes the text of `WHAT`, or says why there is none.
pub fn fill<E: From<String>>(
    page: &str,
    generate: impl Fn(&str) -> Result<String, E>,
) -> Result<String, E> {
    let (mut filled, mut lines) = (String::new(), page.lines());
    while let Some(line) = lines.next() {
        filled += &format!("{line}\n");
        let Some(rest) = line.trim().strip_prefix(BEGIN) else { continue };
        let what =
            rest.strip_suffix("-->").ok_or_else(|| format!("{line:?} does not end in -->"))?;
        let what = what.trim();
        if !lines.by_ref().any(|line| line.trim() == END) {
            return Err(format!("the block {what:?} has no line {END:?}").into());
        }
        filled += &format!("\n{}\n\n{END}\n", generate(what)?.trim());
    }
    Ok(filled)
}
