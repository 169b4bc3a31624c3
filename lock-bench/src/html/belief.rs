//! What to know before one believes a lock benchmark, for the page and for Markdown.

use maud::{Markup, html};

const POINTS: [(&str, &str); 10] = [
    (
        "Hand-over",
        "the time from the begin of a release to the next grant of the same name. While many want \
         a name, it alone limits how often the name can be held. It leaves out a worker that takes \
         the lock again itself. An acquire of a name that nobody else wants says what asking \
         costs, and nothing about waiting.",
    ),
    (
        "Unfair locks score high",
        "a worker that has just released is awake, with its connection open. If it may take the \
         lock again before any waiter hears of the release, there is no hand-over at all: \
         throughput is great, and the others wait without bound. Read a rate together with the \
         least and most turns of a worker (1 is an even share) and the grants out of order. p99 / \
         p50 of the waits does not show it: a worker without a turn has no wait that counts.",
    ),
    (
        "Out of order",
        "a grant counts if its worker asked after an earlier grant, while another one that had \
         asked before that grant was still waiting. The time of asking is read before the request \
         is sent, and a store orders requests as they reach it: those that pass each other on \
         their way count, though the store keeps its order.",
    ),
    (
        "Wakes",
        "the events that the server sent. A release lets one waiter in. On etcd the watch of each \
         process that waits hears each change of the name, so that four processes make four wakes \
         of it.",
    ),
    (
        "Closed loop",
        "workers ask again when they are done. A server that stands still for a second gets no \
         requests meanwhile, so that the second counts once per worker, among thousands of fast \
         turns (coordinated omission). It tells how much a store can do.",
    ),
    (
        "Open loop",
        "starts are scheduled (--rate), and latency counts from the scheduled start: all starts of \
         that second show it. It tells what users feel.",
    ),
    (
        "Floors",
        "the bare client, with the least requests and with as many keys as distlock touches. They \
         do not wait, renew or keep an order, and each worker has a name of its own: the distance \
         to them is the price of the promises and, where many want one name, of waiting. By noise, \
         a floor may be slower than distlock.",
    ),
    (
        "One machine",
        "a loopback has no round trips. Each request to a server elsewhere adds one, so the \
         requests per acquisition say more about your system than the microseconds do.",
    ),
    (
        "Noise",
        "a figure is the median of the rounds. A ratio is the median of the ratios of rounds that \
         were played beside each other, so it may differ from the ratio of two rates. Its interval \
         is the least and the greatest of them, three times as wide if there are only three. \
         Figures whose intervals overlap are the same.",
    ),
    (
        "A dash (–)",
        "there is no such figure: nobody waited, or neither the client nor the server counts it.",
    ),
];

pub(super) fn points() -> Markup {
    html! { dl.facts { @for (name, meaning) in POINTS { dt { (name) } dd { (meaning) } } } }
}

/// The same as a list in Markdown.
pub(crate) fn beliefs() -> String {
    POINTS.map(|(name, meaning)| format!("- **{name}:** {meaning}")).join("\n")
}
