//! What drivers share beneath the contract. No part of what people call.

pub mod leftovers;
pub mod opening;
pub mod poison;
pub mod pool;
