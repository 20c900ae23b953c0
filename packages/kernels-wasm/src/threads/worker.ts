/** The program of a worker thread, as text: it starts from a string, so no bundler can lose its file. */
import * as control from "./control";

/** Polls before sleeping: some 200 microseconds, which is longer than what JavaScript does between the steps of an optimizer. */
const POLLS = 40_000;

/** Compiles `probe` first: where compiling is forbidden it throws before any part is claimed. */
export const WORKER_SOURCE = `
"use strict";
function serve(memory) {
  const [words, numbers] = [new Int32Array(memory.buffer), new Float64Array(memory.buffer)];
  const modules = new Map();
  function runParts(first, last) {
    const address = words[${control.MODULE_ADDRESS}] >>> 0;
    if (!modules.has(address)) {
      const binary = new Uint8Array(memory.buffer, address, words[${control.MODULE_BYTES}]).slice();
      const instance = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: { memory } });
      modules.set(address, Object.values(instance.exports));
    }
    const range = words[${control.RANGE}] >>> 0, grain = words[${control.GRAIN}];
    const at = (part) => Math.floor((part * Math.ceil(range / grain)) / words[${control.PARTS}]) * grain;
    const given = numbers.subarray(${control.ARGUMENTS}, ${control.ARGUMENTS} + words[${control.ARGUMENT_COUNT}]);
    modules.get(address)[words[${control.ENTRY}]](at(first), Math.min(range, at(last)), ...given);
  }
  while (Atomics.load(words, ${control.OPEN}) === 1) {
    let [ticket, end, left] = [];
    for (let polls = 0; polls <= ${POLLS} && !left; polls++) {
      ticket = Atomics.load(words, ${control.TICKET});
      end = ticket >>> 16;
      left = end - (ticket & 0xffff);
    }
    if (!left) {
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
