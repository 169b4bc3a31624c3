//! Waiters are served in order of arrival, also when one dies or leaves in the middle. Claims C12,
//! C13 and C15 of the documents; redisson#3004.

use super::{Done, Harness, ensure, needs, property, scene::*};
use crate::Fairness;

property!(order_of_arrival, a_waiter_leaves, a_waiter_dies);

async fn order_of_arrival(h: &dyn Harness) -> Done {
    queue_of_five(h, Third::Stays).await
}

async fn a_waiter_leaves(h: &dyn Harness) -> Done {
    queue_of_five(h, Third::Leaves).await
}

async fn a_waiter_dies(h: &dyn Harness) -> Done {
    queue_of_five(h, Third::Dies).await
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Third {
    Stays,
    Leaves,
    Dies,
}

/// Five waiters of five clients; the third is special. The holder releases the lock after that.
/// Each waiter then notes its number and releases it, too.
async fn queue_of_five(h: &dyn Harness, third: Third) -> Done {
    let (name, holder) = (fresh("fairness"), h.client().await?);
    let guarantees = holder.locks().guarantees();
    needs!(
        guarantees.fairness == Fairness::Fifo,
        "{} promises no order in this mode",
        guarantees.store
    );
    let guard = acquire(h, &*holder, &name).await?;
    let (served, mut order) = tokio::sync::mpsc::unbounded_channel();
    let (mut clients, mut waiters) = (Vec::new(), Vec::new());
    for n in 1..=5 {
        let client = h.client().await?;
        let waiter = lock(h, &*client, &name)?.acquire();
        let served = served.clone();
        waiters.push(tokio::spawn(async move {
            let guard = waiter.await?;
            // The receiver outlives the waiters.
            let _ = served.send(n);
            guard.release().await
        }));
        wait_for_queue(&*holder, &name, n + 1).await?;
        clients.push(client);
    }
    match third {
        Third::Stays => {}
        Third::Leaves => {
            waiters[2].abort();
            wait_for_queue(&*holder, &name, 5).await?;
        }
        Third::Dies => clients[2].crash().await?,
    }
    soon("release", guard.release()).await??;
    let special = (third != Third::Stays).then(|| waiters.remove(2));
    for waiter in waiters {
        promised("a waiter's turn", waiter).await???;
    }
    drop((special, served));
    let mut seen = Vec::new();
    while let Ok(n) = order.try_recv() {
        seen.push(n);
    }
    // A waiter that died may have got the lock before the store noticed.
    let expected: Vec<_> = (1..=5).filter(|n| third == Third::Stays || *n != 3).collect();
    seen.retain(|n| expected.contains(n));
    ensure!(seen == expected, "served in the order {seen:?}, arrived as {expected:?}");
    Ok(())
}
