#!/usr/bin/env node
// A file that is there before the package is built: npm links only commands that exist.
await import("#cli");
