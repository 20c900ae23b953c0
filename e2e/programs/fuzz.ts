/**
 * Random training programs from the command line, each failure as the smallest program that fails:
 * `npm run fuzz -w @opt-e2e/programs -- --programs 1000 --first 1 --devices js,wasm,cpu`. `--compiled` compares only compiled programs with eager ones; `--small` compares small programs with their interpretation.
 */
import { parseArgs } from "node:util";
import { campaign, SCRIPTS, SMALL } from "@opt/testkit";
import { setUp } from "./setup";

const { values } = parseArgs({
  options: {
    programs: { type: "string", default: "1000" },
    first: { type: "string", default: String(Date.now() % 2 ** 31) },
    devices: { type: "string", default: "js,wasm,cpu" },
    small: { type: "boolean", default: false },
    compiled: { type: "boolean", default: false },
  },
});
const [programs, first] = [Number(values.programs), Number(values.first)];
const opened = await setUp(...values.devices.split(","));
if (typeof opened === "string") throw new Error(opened);
const start = performance.now();
let failures = 0;
const report = await campaign(
  { ...opened, onlyCompiled: values.compiled },
  {
    kind: values.small ? SMALL : SCRIPTS,
    first,
    isOver: (done) => {
      if (done > 0 && done % 500 === 0)
        console.log(`${done} programs, ${((performance.now() - start) / done).toFixed(1)} ms each`);
      return done >= programs;
    },
    failed: ({ message }) => {
      failures++;
      console.error(`\n${message}\n`);
    },
  },
);
console.log(`${programs} programs from seed ${first} on ${values.devices}: ${failures} differ.`, report);
process.exitCode = failures > 0 ? 1 : 0;
