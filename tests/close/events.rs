//! The events that this process traces about each lock, from INFO on.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

/// Events as `LEVEL name`, by lock.
#[derive(Clone, Default)]
pub struct Events(Arc<Mutex<HashMap<String, Vec<String>>>>);

#[derive(Default)]
struct Fields {
    name: String,
    lock: Option<String>,
}

impl Events {
    pub fn of_this_process() -> Self {
        let events = Self::default();
        tracing_subscriber::registry().with(events.clone()).init();
        events
    }

    pub fn about(&self, lock: &str) -> Vec<String> {
        self.0.lock().unwrap().get(lock).cloned().unwrap_or_default()
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.name = format!("{value:?}"),
            "lock" => self.lock = Some(format!("{value:?}")),
            _ => {}
        }
    }
}

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = event.metadata().level();
        if event.metadata().target() != "distlock" || *level > Level::INFO {
            return;
        }
        let mut seen = Fields::default();
        event.record(&mut seen);
        if let Some(lock) = seen.lock {
            let line = format!("{level} {}", seen.name);
            self.0.lock().unwrap().entry(lock).or_default().push(line);
        }
    }
}
