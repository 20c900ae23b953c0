/** Roots divided by a scalar: multiplied where multiply-adds are fused, else divided, each quotient is the correctly rounded one. */
import { defineRule, div, sqrt } from "@opt/core";
import { divisors, FAR_DIVISORS, sample, squaresOfAllKinds, squaresOfAllMantissas, wrongQuotients } from "@opt/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWasmBackend, type WasmBackend } from "../../backend";

const rule = defineRule({
  name: "dividedRoots",
  buffers: ["quotient", "x"],
  scalars: ["divisor"],
  update: ({ x }, { divisor }) => ({ quotient: div(sqrt(x), divisor) }),
});

describe.each([
  ["as this engine can", {}],
  ["without fused multiply-adds", { target: { fused: { f32: false, f64: false } } }],
])("roots divided by a scalar, %s", (_name, options) => {
  let backend: WasmBackend;
  beforeAll(async () => {
    backend = await openWasmBackend({ threads: 1, ...options });
  });
  afterAll(() => backend.close());

  it("of all mantissas", () => {
    expect(wrongQuotients(backend, rule, squaresOfAllMantissas(), sample(divisors()))).toEqual([]);
  });

  it("of numbers of all kinds, by numbers of all kinds", () => {
    expect(wrongQuotients(backend, rule, squaresOfAllKinds(), [...divisors(), ...FAR_DIVISORS])).toEqual([]);
  });
});
