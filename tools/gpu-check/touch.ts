/** Every kind of kernel a few times, for a checker of memory accesses to look at: a small training with each optimizer, and its parts. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import {
  clipGradNorm,
  conv2d,
  crossEntropyRows,
  gather,
  init,
  layerNorm,
  maxPool2d,
  parameter,
  randn,
  tensor,
  tidy,
} from "@opt/core";
import "@opt/kernels-cuda";
import { NAdam } from "@opt/nadam";

await init(process.argv[2] ?? "cuda");
const [rowsOf, labels] = [tensor(Int32Array.of(1, 5, 16, 0)), tensor(Int32Array.of(0, 6, 3, 3))];
const images = randn([3, 2, 9, 11]);
const filters = parameter(randn([5, 2, 3, 3]));
const table = parameter(randn([17, 13]));
const [scale, shift] = [parameter(randn([13])), parameter(randn([13]))];
const weights = parameter(randn([13, 7]));
const all = [filters, table, scale, shift, weights];
for (const make of [AdamW, Adam, NAdam]) {
  const optimizer = new make(all);
  for (let step = 0; step < 3; step++) {
    tidy(() => {
      const rows = layerNorm(gather(table, rowsOf), scale, shift);
      const loss = crossEntropyRows(rows.matmul(weights), labels).mean();
      const pooled = maxPool2d(conv2d(images, filters), 2);
      loss.add(pooled.softmax().max().add(pooled.sum().mul(1e-3))).backward();
    });
    clipGradNorm(all, 1);
    optimizer.step();
    optimizer.zeroGrad();
  }
}
console.log("touched", (await weights.data())[0]);
process.exit(0);
