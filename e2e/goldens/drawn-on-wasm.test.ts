/** Rounding at random on wasm: asked for before it is used, because programs that do not use it do not ship its kernels. */
import { AdamW } from "@opt/adam-amsgrad";
import { enableStochasticRounding as enableCore, init, parameter, randn } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { enableStochasticRounding } from "@opt/kernels-wasm";

enableCore();
const device = await init("wasm");

function step(): AdamW {
  const param = parameter(randn([64], { device }).to("bf16"));
  const optimizer = new AdamW([param], { stochasticRounding: true });
  param.grad = randn([64], { device }).to("bf16");
  optimizer.step();
  return optimizer;
}

it("says what to call before its kernels are there, and steps after that, asked twice too", () => {
  expectCode("UNSUPPORTED", step);
  expect(step).toThrow("enableStochasticRounding() of the device's package");
  enableStochasticRounding();
  enableStochasticRounding();
  expect(step().stateDict().state["0"]!.step).toBe(1);
});
