import { inspect } from "node:util";
import { expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { l2 } from "../optimizer/gradients/regularizer";
import { Generator } from "../random/generator";
import { StepLR } from "../schedules";

it("the console shows what was asked for, not what is behind it", () => {
  const optimizer = new Momentum([
    { params: [parameter([1])], regularizer: l2(0.5) },
    { params: [parameter([2])], lr: 3 },
  ]);
  const [first, second] = inspect(optimizer).split("\n").slice(1);
  expect(inspect(optimizer)).toMatch(/^Momentum\(\n {2}\(0\): lr=/);
  expect(first).toMatch(/regularizer=\{ kind, coefficient \}.*, params=1$/);
  expect(second).toMatch(/^ {2}\(1\): lr=3, .*params=1$/);
  const schedule = new StepLR(optimizer, { stepSize: 1 });
  schedule.step();
  expect(inspect(schedule)).toMatch(/^StepLR\(lastEpoch=1, lastLr=\[[^,]+, 0.3\d*\]\)$/);
  const generator = new Generator(7);
  generator.nextFloat();
  expect(inspect(generator)).toBe("Generator(key=[7, 0], counter=1)");
  const x = tensor([1]);
  expect(inspect(x.device)).toMatch(/^Device\(js, tensors=\d+, bytes=\d+\)$/);
  const doubled = compile(() => x.mul(2));
  expect(inspect(doubled)).toBe("Compiled(not called yet)");
  doubled();
  expect(inspect(doubled)).toBe("Compiled(traces=1, launches=1, fused=0, peakBytes=0)");
});
