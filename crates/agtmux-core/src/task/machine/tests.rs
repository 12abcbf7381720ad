mod fixture;
mod properties;
mod runs;
mod snapshots;
