/** State in 8 bits on wasm: asked for before it is used, because programs that do not use it do not ship its kernels. */
import { AdamW } from "@opt/adam-amsgrad";
import { enableQ8 as enableCore, init, parameter, randn } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { enableQ8 } from "@opt/kernels-wasm";

enableCore();
const device = await init("wasm");

function step(): AdamW {
  const param = parameter(randn([4096], { device }));
  const optimizer = new AdamW([param], { stateDType: "q8" });
  param.grad = randn([4096], { device });
  optimizer.step();
  return optimizer;
}

it("says what to call before its kernels are there, and steps after that, asked twice too", () => {
  expectCode("UNSUPPORTED", step);
  expect(step).toThrow("enableQ8() of the device's package");
  enableQ8();
  enableQ8();
  expect(step().stateDict().state["0"]!.step).toBe(1);
});
