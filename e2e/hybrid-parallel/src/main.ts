import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./run";

const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), "hybrid-parallel-"));
const { sameAsUninterrupted } = await run(folder, console.log);
console.log(`look at it: npx opt-checkpoint inspect ${join(folder, "two-ranks")}`);
process.exitCode = sameAsUninterrupted ? 0 : 1;
