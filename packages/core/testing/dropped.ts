/** Run with --expose-gc: makes and drops the results of every op, and prints which of them were not given back, or twice. */
import { setTimeout } from "node:timers/promises";
import { DIFFERENTIABLE_OPS, inputsOf } from "@opt/testkit";
import { parameter } from "../src/create";
import { keep, tidy } from "../src/device/scope";
import { FakeDevice } from "./fake-backend";

const devices = DIFFERENTIABLE_OPS.map((op) => ({ name: op.name, device: new FakeDevice() }));

function drop(i: number): void {
  const op = DIFFERENTIABLE_OPS[i]!;
  const { device } = devices[i]!;
  const inputs = inputsOf(op).map(({ values, shape }) => parameter(values, { shape, device }));
  op.run(...inputs);
  // Leaves gradients behind, each the sum of two.
  op.run(...inputs)
    .exp()
    .sum()
    .add(op.run(...inputs).sum())
    .backward();
  // What comes out of a tidy, by its result or by hand, is dropped like what was made outside.
  tidy(() => {
    keep(op.run(...inputs));
    return tidy(() => op.run(...inputs).exp());
  });
  tidy(() =>
    op
      .run(...inputs)
      .exp()
      .sum()
      .backward(),
  );
}

DIFFERENTIABLE_OPS.forEach((_, i) => {
  drop(i);
});
for (let round = 0; round < 30 && devices.some(({ device }) => device.memory().tensors > 0); round++) {
  await setTimeout(5);
  (globalThis as { gc?: () => void }).gc!();
}
const named = (of: (tensors: number) => boolean) =>
  devices.filter(({ device }) => of(device.memory().tensors)).map(({ name }) => name);
console.log(JSON.stringify({ leaking: named((tensors) => tensors > 0), twice: named((tensors) => tensors < 0) }));
