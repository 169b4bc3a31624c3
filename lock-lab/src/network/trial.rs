//! Tests that need a network, which not every machine permits.

use std::{env, fmt::Display, process::ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

use super::Network;

/// Makes the `main` of a test program (`harness = false`) whose tests need a [`Network`].
///
/// Each test is an `async fn` without arguments that returns a `Result`, and gets a tokio
/// runtime of its own. If the machine permits no network, the program prints
/// `not run: NAME: REASON` for each test and counts it as ignored, never as passed. If the
/// environment variable `CI` is set, each fails instead.
///
/// ```no_run
/// use lock_lab::{Network, Redis};
///
/// async fn a_cut_stops_a_client() -> Result<(), Box<dyn std::error::Error>> {
///     let network = Network::new()?;
///     let redis = Redis::builder().on(&network).start().await?;
///     // ..
///     Ok(())
/// }
///
/// // A test in a module is named with it: `module::test`.
/// lock_lab::network_tests!(a_cut_stops_a_client);
/// ```
#[macro_export]
macro_rules! network_tests {
    ($($test:path),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::run_network_tests(::std::vec![
                $($crate::network_trial(::std::stringify!($test), $test)),+
            ])
        }
    };
}

/// Makes one test of a program of `libtest-mimic`, as [`network_tests!`](crate::network_tests)
/// does, for programs that also have other tests.
pub fn network_trial<F, E>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = Result<(), E>>,
    E: Display,
{
    let Err(error) = Network::available() else {
        return Trial::test(name, move || run(test()));
    };
    if env::var_os("CI").is_some() {
        let why = format!("not run: {error}; CI is set, so that is a failure");
        return Trial::test(name, move || Err(Failed::from(why)));
    }
    eprintln!("not run: {name}: {error}");
    Trial::test(name, move || Err(Failed::from(error))).with_ignored_flag(true)
}

/// As many of these tests at a time: most of their time they wait for servers.
const AT_A_TIME: usize = 4;

/// Runs tests as the command line of this program says, like `libtest`.
pub fn run_network_tests(tests: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, tests).exit_code()
}

fn run<E: Display>(test: impl Future<Output = Result<(), E>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(test).map_err(|error| Failed::from(error.to_string()))
}
