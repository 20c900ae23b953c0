/** Random calls of ops beside live PyTorch, on js, wasm and cpu: OPT_OPS of them from seed OPT_OPS_FIRST. OPT_TORCH_PYTHON names a Python that has it. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { init } from "@opt/core";
import { askTorch, expectAnswer, torchPython } from "@opt/testkit";
import { expect, it } from "vitest";
import { opCalls } from "../../packages/core/testing/op-calls";

const { OPT_OPS = "10000", OPT_OPS_FIRST = "1", OPT_OPS_DEVICES = "js,wasm,cpu" } = process.env;
const BATCH = 500;

it(`${OPT_OPS} calls on ${OPT_OPS_DEVICES}, from seed ${OPT_OPS_FIRST}`, { timeout: 0 }, async ({ skip }) => {
  if (torchPython === undefined) return skip("OPT_TORCH_PYTHON is not set");
  const devices = await Promise.all(OPT_OPS_DEVICES.split(",").map((name) => init(name)));
  const wrong: string[] = [];
  let compared = 0;
  for (let seed = Number(OPT_OPS_FIRST); compared < Number(OPT_OPS); seed++) {
    const calls = opCalls(seed, Math.min(BATCH, Number(OPT_OPS) - compared));
    const answers = askTorch(torchPython, calls);
    for (const [i, call] of calls.entries()) {
      for (const device of devices) {
        try {
          expectAnswer(call, answers[i]!, { device });
        } catch (error) {
          wrong.push(`seed ${seed}, ${call.name}, on ${device.name}: ${(error as Error).message}`);
        }
      }
    }
    compared += calls.length;
    console.log(`${compared} calls compared, ${wrong.length} answers wrong`);
  }
  expect(wrong).toEqual([]);
});
