// Products, scans and sums of logarithms against PyTorch.

import { FLOATS, input, judge, random, table } from "../../../testing/torch-table";
import * as F from "../../functions";

const { calls, add } = table();
const numbers = (values: number[], of: number[]) => ({ values, shape: of, dtype: "f64", requiresGrad: true }) as const;
const zeros = numbers([0, 2, 3, 0, 0, 3, 1, 2, 0], [3, 3]);
add("prod of zeros", [zeros], "torch.prod(a, 1)", (a) => F.prod(a!, 1));
add("cumprod of zeros", [zeros], "torch.cumprod(a, 1)", (a) => F.cumprod(a!, 1));
add.second("prod of zeros", [zeros], "torch.prod(a, 1)", (a) => F.prod(a!, 1));
add.second("cumprod of zeros", [zeros], "torch.cumprod(a, 1)", (a) => F.cumprod(a!, 1));
const log = numbers([-Infinity, 1, 1000, 1001, -1000, -1001], [3, 2]);
add("logsumexp far out", [log], "torch.logsumexp(a, 1)", (a) => F.logsumexp(a!, 1));
const infinite = { ...numbers([-Infinity, -Infinity, Infinity, 1, Infinity, -Infinity], [3, 2]), requiresGrad: false };
add("logsumexp of infinities", [infinite], "torch.logsumexp(a, 1)", (a) => F.logsumexp(a!, 1));
add("logcumsumexp of infinities", [infinite], "torch.logcumsumexp(a, 1)", (a) => F.logcumsumexp(a!, 1));
// In order, no product leaves the range but those that are asked for.
for (const dtype of FLOATS) {
  const size = dtype === "f16" ? 1e3 : dtype === "f64" ? 1e200 : 1e30;
  const wide = { dtype, requiresGrad: true } as const;
  const [small, large] = [1 / size, size];
  for (const values of [
    [0, size, size, size],
    [1 / size, small, large, large],
    [large, large, 0, 5],
    [large, large, -large],
  ]) {
    const given = { ...wide, values, shape: [values.length], requiresGrad: false };
    add("cumprod out of range", [given], "torch.cumprod(a, 0)", (a) => F.cumprod(a!, 0));
    add("cumsum out of range", [given], "torch.cumsum(a, 0)", (a) => F.cumsum(a!, 0));
    // PyTorch rounds each product of f16, which leaves the range earlier.
    if (dtype !== "f16") add("prod out of range", [given], "torch.prod(a)", (a) => F.prod(a!));
  }
  if (dtype !== "f32") continue; // of others PyTorch adds infinities of both signs
  const first = { ...wide, values: [0, size, size], shape: [3] };
  add("cumprod of 0 and large ones", [first], "torch.cumprod(a, 0)", (a) => F.cumprod(a!, 0));
  add("prod of 0 and large ones", [first], "torch.prod(a)", (a) => F.prod(a!));
}
const single = numbers([3], []);
add("prod of a number", [single], "torch.prod(a)", (a) => F.prod(a!));
add("cumprod of a number", [single], "torch.cumprod(a, 0)", (a) => F.cumprod(a!, 0));
add("logcumsumexp of a number", [single], "torch.logcumsumexp(a, -1)", (a) => F.logcumsumexp(a!, -1));
for (let i = 0; i < 200; i++) {
  const extents = Array.from({ length: 1 + random.below(3) }, () => (random.below(9) === 0 ? 0 : 1 + random.below(5)));
  const dtype = i % 2 === 0 ? "f64" : random.pick(FLOATS);
  const axis = random.below(extents.length);
  const keeps = random.below(2) === 0;
  const given = { ...input(extents, dtype, { requiresGrad: true }) };
  const kept = `keepdim=${keeps ? "True" : "False"}`;
  add("prod", [given], `torch.prod(a, ${axis}, ${kept})`, (a) => F.prod(a!, axis, keeps));
  add("prod of all", [given], "torch.prod(a)", (a) => F.prod(a!));
  add("cumprod", [given], `torch.cumprod(a, ${axis})`, (a) => F.cumprod(a!, axis));
  add("logsumexp", [given], `torch.logsumexp(a, ${axis}, ${kept})`, (a) => F.logsumexp(a!, axis, keeps));
  add("logcumsumexp", [given], `torch.logcumsumexp(a, ${axis})`, (a) => F.logcumsumexp(a!, axis));
  if (i % 4 > 0) continue;
  const whole = input(extents, random.pick(["i32", "u8", "bool"]));
  add("prod", [whole], `torch.prod(a, ${axis}).to(torch.int32)`, (a) => F.prod(a!, axis));
  add("cumprod", [whole], `torch.cumprod(a, ${axis}).to(torch.int32)`, (a) => F.cumprod(a!, axis));
  add("logsumexp", [whole], `torch.logsumexp(a, ${axis})`, (a) => F.logsumexp(a!, axis));
  const exact = input(extents, "f64", { requiresGrad: true });
  add.second("prod", [exact], `torch.prod(a, ${axis})`, (a) => F.prod(a!, axis));
  add.second("cumprod", [exact], `torch.cumprod(a, ${axis})`, (a) => F.cumprod(a!, axis));
  add.second("logsumexp", [exact], `torch.logsumexp(a, ${axis})`, (a) => F.logsumexp(a!, axis));
  // PyTorch goes through log |g|, which has no slope at g = 0.
  const above = input(extents, "f64", { requiresGrad: true, positive: true });
  add.second("logcumsumexp", [above], `torch.logcumsumexp(a, ${axis})`, (a) => F.logcumsumexp(a!, axis));
}

await judge(new URL("../../../testing/goldens/products.json", import.meta.url), calls, 100);
