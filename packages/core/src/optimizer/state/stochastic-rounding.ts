/** Stochastic rounding of 16-bit parameters. Programs enable it, so that bundles of others do not contain it. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { isPlainObject } from "../../errors/show";
import { keysOf, randomUpdate } from "../../rule/rounding";
import { type StochasticRounding, stochasticRounding } from "./state";

const atRandom: StochasticRounding = {
  fits(where, option) {
    if (!isPlainObject(option)) return typeof option === "boolean";
    checkOptions(`${where} stochasticRounding`, option, { seed: "number" });
    const { seed } = option as { seed?: unknown };
    const isWhole = Number.isSafeInteger(seed) && (seed as number) >= 0;
    checkValue(isWhole, where, "stochasticRounding.seed", "a whole number from 0 on", seed, "For example { seed: 1 }.");
    return true;
  },

  keys(option, step, { name, backend }) {
    check(
      backend.draws,
      "UNSUPPORTED",
      name,
      () => "it has no kernels for stochasticRounding yet.",
      "Call enableStochasticRounding() of the device's package.",
    );
    return keysOf(typeof option === "object" ? option.seed : 0, step);
  },
};

/**
 * Lets every optimizer step bf16 and f16 parameters without float32 copies, by `stochasticRounding: true` or `{ seed }`.
 * `@opt/kernels-cpu`, `@opt/kernels-cuda` and `@opt/kernels-webgpu` call it; for "wasm" the one of `@opt/kernels-wasm` is called instead.
 *
 *     p = up with probability (x - down) / (up - down), else down      x: the new value in float32, between two neighbours of 16 bits
 *
 * Source: torchao, `bf16_stochastic_round`. The draws differ from it; they are the same on every exact device.
 *
 * @example
 * enableStochasticRounding();
 * const w = parameter(randn([64, 128]).to("bf16"));
 * const optimizer = new AdamW([w], { stochasticRounding: { seed: 7 }, stateDType: "bf16" }); // 6 bytes an element, not 14
 */
export function enableStochasticRounding(): void {
  Object.assign(stochasticRounding, atRandom, { update: randomUpdate });
}
