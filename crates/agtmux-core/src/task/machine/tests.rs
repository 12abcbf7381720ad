mod looks;
mod properties;
mod runs;
mod scene;
