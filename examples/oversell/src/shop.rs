//! The stock and its sale.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use distlock::{FencingToken, Gate, StaleToken};
use indicatif::{ProgressBar, ProgressStyle};

/// A shop with its stock in one row. Workers read the row, and write it back some time later.
#[derive(Clone)]
pub struct Shop(Arc<Inner>);

struct Inner {
    stock: u32,
    /// The row without a check: any worker may write any value.
    left: AtomicU32,
    /// The same row behind a check of fencing tokens.
    fenced: Gate<u32>,
    sold: AtomicU32,
    rejected: AtomicU32,
    /// Counts the sales, to decide which of them stall. The first worker that reaches one takes it.
    visits: AtomicU32,
    progress: ProgressBar,
}

impl Shop {
    pub fn open(stock: u32, title: &'static str) -> Self {
        let progress = ProgressBar::new(u64::from(stock));
        // The template is a constant.
        let style =
            ProgressStyle::with_template("{msg:34} {bar:30} {pos}/{len}").expect("a template");
        progress.set_style(style);
        progress.set_message(title);
        Self(Arc::new(Inner {
            stock,
            left: AtomicU32::new(stock),
            fenced: Gate::new(stock),
            sold: AtomicU32::new(0),
            rejected: AtomicU32::new(0),
            visits: AtomicU32::new(0),
            progress,
        }))
    }

    /// Whether this visit stalls: three times in a sale, never among the first visits.
    pub fn stalls(&self) -> bool {
        let visit = self.0.visits.fetch_add(1, Ordering::SeqCst);
        let third = self.0.stock / 4;
        visit > 0 && visit.is_multiple_of(third) && visit <= 3 * third
    }

    pub fn read(&self) -> u32 {
        self.0.left.load(Ordering::SeqCst)
    }

    /// Writes the stock left, and hands the item to the customer.
    pub fn write(&self, left: u32) {
        self.0.left.store(left, Ordering::SeqCst);
        self.hand_over();
    }

    /// Reads the row with a token. A read registers the token too: otherwise an older holder could
    /// still write between a newer holder's read and write.
    pub fn read_fenced(&self, token: FencingToken) -> Result<u32, StaleToken> {
        self.rejecting(self.0.fenced.enter(token, |left| *left))
    }

    pub fn write_fenced(&self, token: FencingToken, left: u32) -> Result<(), StaleToken> {
        self.rejecting(self.0.fenced.enter(token, |row| *row = left))?;
        self.hand_over();
        Ok(())
    }

    fn hand_over(&self) {
        self.0.sold.fetch_add(1, Ordering::SeqCst);
        self.0.progress.inc(1);
    }

    fn rejecting<T>(&self, answer: Result<T, StaleToken>) -> Result<T, StaleToken> {
        if answer.is_err() {
            self.0.rejected.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }

    pub fn close(&self) -> Sale {
        self.0.progress.finish_and_clear();
        Sale {
            stock: self.0.stock,
            sold: self.0.sold.load(Ordering::SeqCst),
            rejected: self.0.rejected.load(Ordering::SeqCst),
        }
    }
}

/// Result of a sale.
pub struct Sale {
    pub stock: u32,
    pub sold: u32,
    pub rejected: u32,
}

impl Sale {
    pub fn oversold(&self) -> u32 {
        self.sold.saturating_sub(self.stock)
    }

    /// Whether everything was sold, and no item twice.
    pub fn is_right(&self) -> bool {
        self.sold == self.stock
    }
}
