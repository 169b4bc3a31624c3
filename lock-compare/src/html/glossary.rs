//! The words that a reader needs to know.

use maud::{Markup, html};

const WORDS: [(&str, &str); 9] = [
    (
        "distlock",
        "the library and program that made this page: one lock over many stores, which is played \
         beside the articles' own locks.",
    ),
    ("Holder, waiter", "who has the lock, and who wants it."),
    ("TTL", "how long a store keeps a lock that nobody renews; a watchdog renews it meanwhile."),
    (
        "Token, gate",
        "a number that rises with each grant. A gate is a check at the resource that remembers the \
         greatest one and refuses a holder who comes late.",
    ),
    (
        "Holds, breaks",
        "is the claim so? It holds if what it says was seen. It breaks if the claim warns of a \
         mistake and the mistake did its damage: what is shown in red is the articles' mistake, \
         not the store. The second mark of a cell is distlock's.",
    ),
    ("As printed", "the article's lock, sent as it stands by the store's own client."),
    (
        "Imitation, simulation",
        "a lock as another client makes it; an article's lock on a store that it was not written for.",
    ),
    ("Control", "the same case without the mistake, or without what prevents it."),
    ("MySQL", "MariaDB, where the versions below say so."),
];

pub(super) fn words() -> Markup {
    html! {
        details open {
            summary { "What the words of this page mean" }
            dl.facts { @for (word, meaning) in WORDS { dt { (word) } dd { (meaning) } } }
        }
    }
}
