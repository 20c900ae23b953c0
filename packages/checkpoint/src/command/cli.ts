#!/usr/bin/env node
/** Where `npx opt-checkpoint` begins. */
import { runCommand } from "./command";

process.exitCode = await runCommand(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  error: (text) => process.stderr.write(text),
  isTerminal: process.stderr.isTTY === true,
});
