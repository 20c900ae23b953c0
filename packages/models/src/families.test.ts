/** Tiny models of each family have the logits of transformers 5.17. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { tensor } from "@opt/core";
import { EXACT_DEVICES, eachDevice } from "@opt/testkit";
import { expect, it } from "vitest";
import { goldens, TOKENS, tiny } from "../testing/tiny";

await eachDevice((device) => {
  it.each([...goldens.keys()])("%s: logits are transformers'", async (name) => {
    const model = await tiny(name, device);
    const logits = await model.forward(tensor([TOKENS], { dtype: "i32", device })).data();
    const { logits: expected } = goldens.get(name)!;
    const largest = expected.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    expect(logits).toAgreeWith(expected, { absolute: 1e-5 * largest, relative: 0 });
  });
}, EXACT_DEVICES);
