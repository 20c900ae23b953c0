import { parameter } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Adadelta, type AdadeltaOptions } from "./index";

optimizerSuite(exported);

it.each<[string, object]>([
  ["lr below 0", { lr: -1 }],
  ["rho above 1", { rho: 1.1 }],
  ["rho below 0", { rho: -0.1 }],
  ["rho NaN", { rho: Number.NaN }],
  ["eps below 0", { eps: -1 }],
  ["weightDecay below 0", { weightDecay: -1 }],
  ["alpha, which is RMSprop's", { alpha: 0.9 }],
])("rejects %s, for all and for a group", (_, options) => {
  const w = parameter([1]);
  expectCode("BAD_ARGUMENT", () => new Adadelta([w], options as Partial<AdadeltaOptions>));
  expectCode("BAD_ARGUMENT", () => new Adadelta([{ params: [w], ...options }]));
});

it("has PyTorch's defaults, and takes both ends of rho", () => {
  const { params, names, ...options } = new Adadelta([parameter([1])]).groups[0]!;
  expect(options).toEqual({ lr: 1, rho: 0.9, eps: 1e-6, weightDecay: 0, maximize: false });
  for (const rho of [0, 1]) expect(new Adadelta([parameter([1])], { rho }).groups[0]!.rho).toBe(rho);
});
