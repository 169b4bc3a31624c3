//! The version of etcd.

use std::fmt;

/// Major, minor and patch.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Version(u32, u32, u32);

impl Version {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(['.', '-', '+']).map(|number| number.parse().ok());
        Some(Self(numbers.next()??, numbers.next()??, numbers.next()??))
    }

    /// Whether it is older than these patches of 3.4 and 3.5, which have a correction.
    pub(crate) fn is_before(self, patch_of_3_4: u32, patch_of_3_5: u32) -> bool {
        match self {
            Self(3, 5, patch) => patch < patch_of_3_5,
            version => version < Self(3, 4, patch_of_3_4),
        }
    }

    pub(crate) fn is_of_3_4(self) -> bool {
        (self.0, self.1) == (3, 4)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}
