//! The numbers that a PostgreSQL counts.

use crate::Counters;

/// Reads the numbers.
///
/// Uses `pg_stat_statements`, which counts a statement when it ends; a prepared one, each time that
/// it is executed, by the text that prepared it. The sums of `pg_stat_database`
/// are up to 10 s old, since each connection reports to them in its own time.
pub(super) const ASK: &str = "
    SELECT 'cmd.' || coalesce(lower(substring(regexp_replace(regexp_replace(
            query, '/\\*.*?\\*/', '', 'g'), '^PREPARE .*? AS ', '')
            from '[[:alpha:]]+')), 'none'), sum(calls)
        FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' GROUP BY 1
    UNION ALL SELECT 'connections', count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND application_name <> 'lock-lab'
    UNION ALL SELECT 'waiting', count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

pub(super) fn read(answer: &str) -> Counters {
    let pairs = answer.lines().filter_map(|line| line.split_once('\t'));
    pairs.filter_map(|(key, value)| Some((key, value.parse().ok()?))).collect()
}
