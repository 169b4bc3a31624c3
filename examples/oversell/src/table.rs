//! The result as a table.

use std::fmt;

use comfy_table::{Cell, CellAlignment, presets::UTF8_FULL_CONDENSED};

use crate::{scenario::Scenario, shop::Sale};

pub struct Table(comfy_table::Table);

impl Default for Table {
    fn default() -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header(["", "sold", "oversold", "late writes rejected", ""]);
        Self(table)
    }
}

impl Table {
    pub fn add(&mut self, scenario: Scenario, sale: &Sale) {
        let verdict = match (scenario.must_hold(), sale.is_right()) {
            (true, true) => "held",
            (true, false) => "BROKEN",
            (false, true) => "lucky",
            (false, false) => "oversold, as expected",
        };
        let number = |n: u32| Cell::new(n).set_alignment(CellAlignment::Right);
        self.0.add_row([
            Cell::new(scenario.title()),
            number(sale.sold),
            number(sale.oversold()),
            number(sale.rejected),
            Cell::new(verdict),
        ]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
