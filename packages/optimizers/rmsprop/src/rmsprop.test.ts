import { enableQ8, parameter, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { RMSprop, type RMSpropOptions } from "./index";

optimizerSuite(exported);

it.each<[string, object]>([
  ["lr below 0", { lr: -1 }],
  ["alpha below 0", { alpha: -0.1 }],
  ["eps below 0", { eps: -1 }],
  ["momentum NaN", { momentum: Number.NaN }],
  ["weightDecay below 0", { weightDecay: -1 }],
  ["text for centered", { centered: "yes" }],
  ["rho, which is Keras'", { rho: 0.9 }],
])("rejects %s, for all and for a group", (_, options) => {
  const w = parameter([1]);
  expectCode("BAD_ARGUMENT", () => new RMSprop([w], options as Partial<RMSpropOptions>));
  expectCode("BAD_ARGUMENT", () => new RMSprop([{ params: [w], ...options }]));
});

it("has PyTorch's defaults", () => {
  const { params, names, ...options } = new RMSprop([parameter([1])]).groups[0]!;
  expect(options).toEqual({
    lr: 1e-2,
    alpha: 0.99,
    eps: 1e-8,
    weightDecay: 0,
    momentum: 0,
    centered: false,
    maximize: false,
  });
});

it("completes the state that another option needs, in the middle of a run", () => {
  const w = parameter([1, 2]);
  const optimizer = new RMSprop([w]);
  const step = () => {
    w.grad = tensor([1, -1]);
    optimizer.step();
  };
  step();
  expect(Object.keys(optimizer.stateDict().state["0"]!)).toEqual(["step", "square_avg"]);
  Object.assign(optimizer.groups[0]!, { momentum: 0.9, centered: true });
  step();
  expect(Object.keys(optimizer.stateDict().state["0"]!).sort()).toEqual([
    "grad_avg",
    "momentum_buffer",
    "square_avg",
    "step",
  ]);
});

it("rejects averages in 8 bits where it subtracts one's square from the other", () => {
  enableQ8();
  const w = parameter([1, 2]);
  expectCode("UNSUPPORTED", () => new RMSprop([w], { centered: true, stateDType: "q8" }));
  expect(new RMSprop([w], { stateDType: "q8" }).groups[0]!.stateDType).toBe("q8");
});
