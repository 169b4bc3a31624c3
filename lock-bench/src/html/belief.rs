//! What to know before one believes a lock benchmark.

use maud::{Markup, html};

const POINTS: [(&str, &str); 7] = [
    (
        "Hand-over",
        "the time from the begin of a release to the next grant of the same name. While a lock is \
         wanted by many, this alone limits how often it can be held; an acquire that nobody \
         contends says nothing about it.",
    ),
    (
        "Unfair locks score high",
        "a worker that has just released is awake and connected, and can take the lock again before \
         any waiter hears of it. Throughput is great, and the others wait. Read a rate together \
         with the least and most turns of a worker and with the grants out of order.",
    ),
    (
        "Closed loop",
        "each worker asks again when it is done. A store that stalls for a second then gets no \
         requests for a second, so that the stall counts once: the mean and p99 hardly show it.",
    ),
    (
        "Open loop",
        "starts are scheduled (--rate), and latency counts from the scheduled start. All starts of \
         that second count, with their waits. Use it for what your users would feel.",
    ),
    (
        "Floors",
        "the bare client, with the least requests and with as many keys as distlock touches. They do \
         not wait, renew or keep an order, and each worker has a name of its own: the distance to \
         them is the price of the promises and, where many want one name, of waiting.",
    ),
    (
        "One machine",
        "the network here is a loopback. Each request to a server elsewhere adds its round trip, so \
         the number of requests says more about your system than the microseconds do.",
    ),
    (
        "Noise",
        "the value is the median of the rounds, the interval their least and greatest. Two figures \
         whose intervals overlap are the same.",
    ),
];

pub(super) fn points() -> Markup {
    html! { dl.facts { @for (name, meaning) in POINTS { dt { (name) } dd { (meaning) } } } }
}
