import { setDefaultDevice, tensor, noGrad, layerNorm, crossEntropyRows, device } from "@opt/core";
import * as core from "@opt/core";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
const name = process.argv[2]!;
const dev = await (core as any).init(name);
const lengths = (process.argv[3] ?? "10,64,256,1000,50257").split(",").map(Number);
let seed = 1; const rnd = () => ((seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff) * 4 - 2;
const out: Record<string, number> = {};
for (const length of lengths) {
  const rows = Math.max(4, Math.floor(200_000 / length));
  const x = tensor(Float32Array.from({ length: rows * length }, rnd), { shape: [rows, length], device: dev, requiresGrad: true } as any);
  const g = tensor(Float32Array.from({ length: rows * length }, rnd), { shape: [rows, length], device: dev });
  const w = tensor(Float32Array.from({ length }, rnd), { device: dev, requiresGrad: true } as any);
  const labels = tensor(Int32Array.from({ length: rows }, (_, i) => (i * 7) % length), { device: dev });
  const one = tensor(new Float32Array(rows).fill(0.5), { device: dev });
  const ops: Record<string, () => any> = {
    softmax: () => x.softmax(-1), logSoftmax: () => (x as any).logSoftmax(-1), layerNorm: () => layerNorm(x, w, w), ce: () => crossEntropyRows(x, labels),
  };
  const d = (dev as any);
  for (const [op, f] of Object.entries(ops)) {
    const fw: number[] = [], bw: number[] = [];
    for (let k = 0; k < 40; k++) {
      const t0 = process.hrtime.bigint();
      const y = f();
      const t1 = process.hrtime.bigint();
      const t2 = process.hrtime.bigint();
      y.backward(op === "ce" ? one : g);
      const t3 = process.hrtime.bigint();
      fw.push(Number(t1 - t0)); bw.push(Number(t3 - t2));
      x.grad?.dispose(); (x as any).grad = null; w.grad?.dispose(); (w as any).grad = null; y.dispose();
    }
    fw.sort((a, b) => a - b); bw.sort((a, b) => a - b);
    out[`${op} ${length}`] = fw[8]! / 1000; out[`${op}Grad ${length}`] = bw[8]! / 1000;
  }
}
console.log(JSON.stringify(out));
