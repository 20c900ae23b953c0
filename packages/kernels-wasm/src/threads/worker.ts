/** The program of a worker thread, as text: it starts from a string, so no bundler can lose its file. */
import * as control from "./control";

/** Polls before sleeping: some 50 microseconds, so that back-to-back calls find the workers awake. */
const POLLS = 10_000;

/** Compiles `probe` first: where compiling is forbidden that refuses before any part is claimed. */
export const WORKER_SOURCE = `
"use strict";
function serve(memory, isSpare) {
  const bed = isSpare ? ${control.LONG} : ${control.TICKET};
  const words = new Int32Array(memory.buffer, 0, ${2 * (control.ARGUMENTS + control.MAXIMUM_ARGUMENTS)});
  const numbers = new Float64Array(memory.buffer, 0, ${control.ARGUMENTS + control.MAXIMUM_ARGUMENTS});
  const modules = new Map(), counted = isSpare ? 0 : 1;
  function entry() {
    const address = words[${control.MODULE_ADDRESS}] >>> 0;
    let functions = modules.get(address);
    if (functions === undefined) {
      const binary = new Uint8Array(new Uint8Array(memory.buffer, address, words[${control.MODULE_BYTES}]));
      const instance = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: { memory } });
      functions = Object.values(instance.exports);
      modules.set(address, functions);
    }
    return functions[words[${control.ENTRY}]];
  }
  function runPart(part) {
    const parts = words[${control.PARTS}], range = words[${control.RANGE}] >>> 0, grain = words[${control.GRAIN}];
    const units = Math.ceil(range / grain);
    const start = Math.floor((part * units) / parts) * grain;
    const end = Math.min(range, Math.floor(((part + 1) * units) / parts) * grain);
    const first = ${control.ARGUMENTS};
    entry()(start, end, ...numbers.subarray(first, first + words[${control.ARGUMENT_COUNT}]));
  }
  while (Atomics.load(words, ${control.OPEN}) === 1) {
    let seen, ticket, left;
    for (let polls = isSpare ? ${POLLS} : 0; polls <= ${POLLS}; polls++) {
      seen = Atomics.load(words, bed);
      ticket = Atomics.load(words, ${control.TICKET});
      left = ticket & ${control.REMAINING_MASK};
      if (left !== 0) break;
    }
    if (left === 0) {
      Atomics.add(words, ${control.SLEEPING}, counted);
      Atomics.wait(words, bed, seen);
      Atomics.sub(words, ${control.SLEEPING}, counted);
    } else if (Atomics.compareExchange(words, ${control.TICKET}, ticket, ticket - 1) === ticket) {
      try {
        runPart(left - 1);
      } catch {
        Atomics.store(words, ${control.FAILED}, 1);
      }
      if (Atomics.sub(words, ${control.PENDING}, 1) === 1) Atomics.notify(words, ${control.PENDING});
    }
  }
}
function start({ memory, probe, isSpare }, answer) {
  new WebAssembly.Module(probe);
  answer("ready");
  serve(memory, isSpare);
}
if (typeof require === "function") {
  const { workerData, parentPort } = require("node:worker_threads");
  start(workerData, (word) => parentPort.postMessage(word));
} else {
  self.onmessage = (event) => start(event.data, (word) => self.postMessage(word));
}
`;
