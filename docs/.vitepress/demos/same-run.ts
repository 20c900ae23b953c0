/** The worker of the same run: trains on wasm, and compares each line with the ledger of `cpu` in Node. */
import "@opt/kernels-wasm";
import { compareLedgers, type LedgerLine } from "@opt/checkpoint";
import { init } from "@opt/core";
import { checksumOf } from "../../../e2e/same-run/src/checksum";
import { trainedLedger } from "../../../e2e/same-run/src/run";
/** Written by `npm start -w e2e/same-run -- --compiled --out ../../docs/.vitepress/demos/gpt.jsonl`. */
import stored from "./gpt.jsonl";
import type { SameRunMessage } from "./ledger-lines";

const PAUSE_MS = 120; // slow enough to watch

const tell = (message: SameRunMessage) => postMessage(message);
const there = new Map(
  stored
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as LedgerLine)
    .map((line) => [line.step, line]),
);
const device = await init("wasm");
tell({ kind: "device", name: device.name, portable: device.portable });
await trainedLedger(
  { model: "gpt", optimizer: "NAdam", steps: there.size, compiled: true },
  undefined,
  async (line) => {
    const other = there.get(line.step)!;
    const { first } = compareLedgers([line], [other]);
    tell({
      kind: "line",
      step: line.step,
      here: checksumOf(line),
      there: checksumOf(other),
      tensors: Object.keys(line.tensors).length,
      differing: first?.tensors ?? [],
    });
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  },
);
tell({ kind: "done" });
