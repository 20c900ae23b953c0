import { noGrad, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { InstanceNorm1d, InstanceNorm2d } from "../../index";

describe("InstanceNorm", () => {
  it("has no state unless it is asked for, and PyTorch's names then", () => {
    expect(new InstanceNorm1d(2).namedTensors()).toEqual([]);
    const whole = new InstanceNorm2d(2, { affine: true, trackRunningStats: true });
    const names = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"];
    expect(Object.keys(whole.stateDict())).toEqual(names);
    expect(whole.namedParameters().map(([name]) => name)).toEqual(["weight", "bias"]);
  });

  it("leaves nothing behind but its result", () => {
    const [layer, x] = [new InstanceNorm2d(2, { affine: true, trackRunningStats: true }), zeros([2, 2, 3, 3])];
    const { tensors } = x.device.memory();
    noGrad(() => layer.forward(x));
    expect(x.device.memory().tensors).toBe(tensors + 1);
  });

  const rows: [string, () => unknown, string][] = [
    ["one value per channel of a sample", () => new InstanceNorm1d(2).forward(zeros([3, 2, 1])), "BAD_SHAPE"],
    ["other channels", () => new InstanceNorm1d(2).forward(zeros([4, 3, 5])), "BAD_SHAPE"],
    ["other axes", () => new InstanceNorm2d(2).forward(zeros([4, 2])), "BAD_SHAPE"],
    ["a momentum beyond 1", () => new InstanceNorm2d(2, { momentum: 2 }), "BAD_ARGUMENT"],
  ];
  it.each(rows)("rejects %s", (_, body, code) => expectCode(code as "BAD_SHAPE", body));
});
