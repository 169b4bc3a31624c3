use futures_util::FutureExt;

use super::*;

const TTL: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Session(Duration);

impl Pooled for Session {
    fn ttl(&self) -> Duration {
        self.0
    }

    fn is_over(&self) -> bool {
        false
    }
}

type Sessions = Pool<Session, &'static str>;

fn wanted(
    pool: &Sessions,
    ttl: Duration,
) -> (Maker<Session, &'static str>, OpeningWait<Session, &'static str>) {
    match pool.get(ttl).unwrap() {
        Found::Wanted { maker, wait, .. } => (maker, wait),
        found => panic!("{found:?}"),
    }
}

fn opened(pool: &Sessions, ttl: Duration) -> Arc<Session> {
    let session = Arc::new(Session(ttl));
    assert!(wanted(pool, ttl).0.done(Ok(session.clone())));
    session
}

#[tokio::test]
async fn callers_that_wait_for_a_dropped_maker_may_open_the_session() {
    let pool = Sessions::new("a store", 8);
    let (maker, _) = wanted(&pool, TTL);
    let Ok(Found::Opening(mut wait)) = pool.get(TTL) else { panic!("two makers") };
    let panicked = tokio::spawn(async move {
        let _maker = maker;
        panic!("on purpose");
    });
    panicked.await.unwrap_err();
    assert!(wait.outcome().await.is_none());
    let (maker, mut wait) = wanted(&pool, TTL);
    maker.failed("busy");
    assert_eq!(wait.last_failure(), Some("busy"));
    assert!(!maker.done(Err("refused")));
    assert_eq!(wait.outcome().await.unwrap().unwrap_err(), "refused");
    wanted(&pool, TTL);
}

#[tokio::test]
async fn a_deserted_opening_ends_and_does_not_end_the_next_one() {
    let pool = Sessions::new("a store", 8);
    let (maker, wait) = wanted(&pool, TTL);
    assert!(maker.deserted().now_or_never().is_none());
    drop(wait);
    maker.deserted().await;
    let (_next, _wait) = wanted(&pool, TTL);
    drop(maker);
    assert!(matches!(pool.get(TTL), Ok(Found::Opening(_))));
}

#[test]
fn an_idle_session_makes_room_for_another_ttl() {
    let pool = Sessions::new("a store", 2);
    let [first, second, third] = [1, 2, 3].map(Duration::from_secs);
    let used = opened(&pool, first);
    let idle = Arc::downgrade(&opened(&pool, second));
    let Ok(Found::Wanted { instead_of, maker, .. }) = pool.get(third) else { panic!() };
    assert_eq!(instead_of.unwrap().0, second);
    assert!(idle.upgrade().is_none());
    let error = pool.get(second).unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error:?}");
    drop((maker, used));
    assert!(matches!(pool.get(first), Ok(Found::Open(_))));
}

#[test]
fn a_retired_session_lives_as_long_as_others_keep_it() {
    let pool = Sessions::new("a store", 8);
    let session = opened(&pool, TTL);
    pool.retire(&session);
    let next = opened(&pool, TTL);
    assert_eq!(pool.all().len(), 2);
    drop(session);
    assert!(pool.all().iter().all(|session| Arc::ptr_eq(session, &next)));
    pool.forget(&next);
    assert!(pool.all().is_empty());
}

#[tokio::test]
async fn a_closed_pool_takes_no_session_in() {
    let pool = Sessions::new("a store", 8);
    let session = opened(&pool, TTL);
    let (maker, mut wait) = wanted(&pool, TTL * 2);
    assert!(Arc::ptr_eq(&pool.close()[0], &session));
    assert!(!maker.done(Ok(Arc::new(Session(TTL * 2)))));
    assert!(wait.outcome().await.is_none());
    assert!(pool.get(TTL).is_err() && pool.any().is_none());
}

#[tokio::test]
async fn a_session_with_another_ttl_is_reported_and_not_kept() {
    let pool = Sessions::new("a store", 8);
    let (maker, mut wait) = wanted(&pool, TTL);
    assert!(!maker.done(Ok(Arc::new(Session(TTL * 2)))));
    assert_eq!(wait.outcome().await.unwrap().unwrap().0, TTL * 2);
    wanted(&pool, TTL);
}

/// All sequences of six steps.
#[test]
fn at_most_one_caller_opens_a_session_and_only_an_open_one_is_found() {
    for sequence in 0..6_u32.pow(6) {
        let pool = Sessions::new("a store", 8);
        let (mut opening, mut open, mut closed) = (None, None, false);
        for step in (0..6).map(|at| sequence / 6_u32.pow(at) % 6) {
            match (step, opening.take()) {
                (0, before) => {
                    opening = match pool.get(TTL) {
                        Ok(Found::Open(found)) => {
                            assert!(open.as_ref().is_some_and(|open| Arc::ptr_eq(open, &found)));
                            before
                        }
                        Ok(Found::Opening(_)) => {
                            assert!(before.is_some() && open.is_none(), "{sequence}");
                            before
                        }
                        Ok(Found::Wanted { maker, wait, .. }) => {
                            assert!(before.is_none() && open.is_none() && !closed, "{sequence}");
                            Some((maker, wait))
                        }
                        Err(_) => {
                            assert!(closed, "{sequence}");
                            before
                        }
                    };
                }
                (1, Some((maker, _wait))) => {
                    let session = Arc::new(Session(TTL));
                    assert_eq!(maker.done(Ok(session.clone())), !closed, "{sequence}");
                    open = Some(session).filter(|_| !closed);
                }
                (2, Some((maker, _wait))) => assert!(!maker.done(Err("refused"))),
                // The maker is dropped.
                (3, _) => {}
                (4, before) => {
                    opening = before;
                    let _ = open.take().inspect(|open| pool.retire(open));
                }
                (5, before) => {
                    opening = before;
                    assert_eq!(
                        pool.close().len(),
                        usize::from(open.take().is_some()),
                        "{sequence}"
                    );
                    closed = true;
                }
                _ => {}
            }
        }
    }
}
