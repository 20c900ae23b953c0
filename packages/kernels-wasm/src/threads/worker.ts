/** The program of a worker thread, as text: it starts from a string, so no bundler can lose its file. */
import * as control from "./control";

/** Polls before sleeping: some 200 microseconds, which is longer than what JavaScript does between the steps of an optimizer. */
const POLLS = 40_000;

/** Compiles `probe` first: where compiling is forbidden that refuses before any part is claimed. */
export const WORKER_SOURCE = `
"use strict";
function serve(memory) {
  const words = new Int32Array(memory.buffer, 0, ${2 * (control.ARGUMENTS + control.MAXIMUM_ARGUMENTS)});
  const numbers = new Float64Array(memory.buffer, 0, ${control.ARGUMENTS + control.MAXIMUM_ARGUMENTS});
  const modules = new Map();
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
  function runParts(first, last) {
    const parts = words[${control.PARTS}], range = words[${control.RANGE}] >>> 0, grain = words[${control.GRAIN}];
    const units = Math.ceil(range / grain);
    const start = Math.floor((first * units) / parts) * grain;
    const end = Math.min(range, Math.floor((last * units) / parts) * grain);
    const from = ${control.ARGUMENTS};
    entry()(start, end, ...numbers.subarray(from, from + words[${control.ARGUMENT_COUNT}]));
  }
  while (Atomics.load(words, ${control.OPEN}) === 1) {
    let ticket, end, left;
    for (let polls = 0; polls <= ${POLLS}; polls++) {
      ticket = Atomics.load(words, ${control.TICKET});
      end = ticket >>> 16;
      left = end - (ticket & 0xffff);
      if (left !== 0) break;
    }
    if (left === 0) {
      Atomics.add(words, ${control.SLEEPING}, 1);
      Atomics.wait(words, ${control.TICKET}, ticket);
      Atomics.sub(words, ${control.SLEEPING}, 1);
      continue;
    }
    const taken = Math.ceil(left / words[${control.SHARES}]);
    if (Atomics.compareExchange(words, ${control.TICKET}, ticket, ticket - (taken << 16)) === ticket) {
      try {
        runParts(end - taken, end);
      } catch {
        Atomics.store(words, ${control.FAILED}, 1);
      }
      if (Atomics.sub(words, ${control.PENDING}, taken) === taken) Atomics.notify(words, ${control.PENDING});
    }
  }
}
function start({ memory, probe }, answer) {
  new WebAssembly.Module(probe);
  answer("ready");
  serve(memory);
}
if (typeof require === "function") {
  const { workerData, parentPort } = require("node:worker_threads");
  start(workerData, (word) => parentPort.postMessage(word));
} else {
  self.onmessage = (event) => start(event.data, (word) => self.postMessage(word));
}
`;
