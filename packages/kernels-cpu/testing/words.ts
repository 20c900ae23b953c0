/** Prints which instruction sets are here, and checksums of what products, reductions, orders and optimizers compute with the best of them. */
import { crc32 } from "node:zlib";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import * as core from "@opt/core";
import { NAdam } from "@opt/nadam";
import "../src/index";
import { loadAddon } from "../src/load-addon";

await core.init("cpu");

/** Sums of the words of tensors, by what was computed. */
const words: Record<string, number> = {};

function note(name: string, ...tensors: core.Tensor[]): void {
  for (const tensor of tensors) {
    const { buffer, byteOffset, byteLength } = tensor.dataSync() as Float32Array;
    words[name] = crc32(new Uint8Array(buffer, byteOffset, byteLength), words[name]);
  }
}

const generator = new core.Generator(48);
// Below, at and above the widest vectors, and several blocks with a rest.
const EXTENTS = [1, 3, 8, 15, 16, 17, 33, 130, 1027];

for (const dtype of ["f32", "f64"] as const) {
  for (const n of EXTENTS) {
    const x = core.randn([7, n], { dtype, generator });
    const y = core.randn([n, 19], { dtype, generator });
    note(`${dtype} products`, x.matmul(y), core.matmul(x.transpose(), x), core.matmul(y.transpose(), x.transpose()));
    note(`${dtype} sums`, x.sum(), x.sum(0), x.sum(1), x.mean(1), core.norm(x), core.cumsum(x, 1));
    note(`${dtype} extremes`, x.max(1), x.min(0), x.argmax(1));
    note(`${dtype} maps`, x.exp(), x.tanh(), x.sigmoid(), core.softmax(x, 1), core.logsumexp(x, [1]), core.gelu(x));
    const { values, indices } = core.sort(x, 1);
    note(`${dtype} orders`, values, indices);
  }
  for (const n of [5, 33, 70]) {
    const x = core.randn([n, n], { dtype, generator });
    note(
      `${dtype} factors`,
      ...Object.values(core.qr(x)),
      ...Object.values(core.svd(x)),
      ...Object.values(core.eigh(x)),
    );
  }
  const kinds = { Adam, AdamW, NAdam };
  for (const [name, Kind] of Object.entries(kinds)) {
    const parameters = EXTENTS.map((n) => core.parameter(core.randn([n], { dtype, generator })));
    const optimizer = new Kind(parameters, { lr: 0.01, weightDecay: 0.1 });
    for (let step = 0; step < 4; step++) {
      for (const p of parameters) p.grad = core.randn(p.shape, { dtype, generator });
      optimizer.step();
    }
    note(`${dtype} ${name}`, ...parameters);
  }
}
note("transforms", core.viewAsReal(core.fft(core.randn([2 ** 13], { generator }))));
console.log(JSON.stringify({ sets: loadAddon().instructionSets(), words }));
