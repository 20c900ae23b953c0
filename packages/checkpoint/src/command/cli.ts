#!/usr/bin/env node
/** Where `npx opt-checkpoint` begins. */
import { runCommand } from "./command";

// Who reads no further (`| head`) has seen enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

process.exitCode = await runCommand(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  error: (text) => process.stderr.write(text),
  isTerminal: process.stderr.isTTY === true,
  hasColors: {
    out: process.stdout.isTTY && process.stdout.hasColors(),
    error: process.stderr.isTTY && process.stderr.hasColors(),
  },
});
