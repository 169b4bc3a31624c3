//! Acquire and release without contention: one task, and 64 tasks on 64 names. The same run
//! measures the bare client beside it: the least that its crate does for a lock.
//!
//! `cargo bench -p distlock-benches --features all --bench acquire [-- STORE]`

use std::{sync::Arc, time::Duration};

use bench::{Load, Table, bare::Bare, load, store, table::Row};
use distlock::Locks;
use lock_lab::AnyStore;

/// Duration of each turn. The sides take turns, so that noise hits both.
const TURN: Duration = Duration::from_millis(700);
const TURNS: usize = 15;

fn main() {
    bench::block_on(async {
        let mut table = Table::new("acquire + release, uncontended");
        for store in store::all() {
            for tasks in [1, 64] {
                compare(store, tasks, &mut table).await;
            }
        }
        println!("{table}");
        println!(
            "ratio: distlock / bare client, the median of {TURNS} pairs of turns of {TURN:?}; cpu: of the client; \
             requests: in a database, statements"
        );
    });
}

async fn compare(store: &'static str, tasks: usize, table: &mut Table) {
    let server = AnyStore::open_in_memory(store).await;
    let locks = distlock::connect(server.url()).await.expect("a connection");
    let bare = Bare::of(store, &server.url()).await;
    let (mut ours, mut theirs) = (Vec::new(), vec![Vec::new(); bare.len()]);
    // The first turn warms both sides up.
    for turn in 0..=TURNS {
        let before = store::counters(&server).await;
        let mine = load(&server, tasks, TURN, pair(locks.clone())).await;
        let counted = store::counters(&server).await.since(&before);
        let requests = store::per_time(store, &counted, mine.count);
        if turn > 0 {
            ours.push((mine.clone(), requests));
        }
        for (bare, loads) in bare.iter().zip(&mut theirs) {
            let load = load(&server, tasks, TURN, bare.pair()).await;
            if turn > 0 {
                loads.push(load);
            }
        }
    }
    for (bare, loads) in bare.iter().zip(&theirs) {
        let mine = ours.iter().map(|(load, _)| load.clone()).collect::<Vec<_>>();
        table.add(Row::bare(store, tasks, bare.what(), loads));
        table.add(Row::ours(store, tasks, &mine, loads, ours[0].1));
    }
}

/// The work that one task repeats: take the lock, give it back.
fn pair(locks: Locks) -> Arc<dyn Load> {
    Arc::new(move |task: usize| {
        let lock = locks.lock(format!("bench-{task}")).expect("a name");
        let pair: bench::Pair = Box::new(move || {
            let lock = lock.clone();
            Box::pin(async move {
                lock.acquire().await.expect("the lock").release().await.expect("a release")
            })
        });
        pair
    })
}
