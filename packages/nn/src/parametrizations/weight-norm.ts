import { check, checkOptions, keep, norm, show, type Tensor, tidy } from "@opt/core";
import type { Module } from "../module/module";
import { parameterOf, parametrize } from "./parametrize";

export interface WeightNormOptions {
  /** The axis of what has a length of its own each; null: the whole weight has one. Default 0, the outputs. */
  readonly axis?: number | null;
}

/**
 * Trains length and direction of a weight apart: weight = g v / |v| (Salimans & Kingma 2016). The state then has g as
 * `parametrizations.weight.original0` and v as `parametrizations.weight.original1`, as PyTorch's
 * `torch.nn.utils.parametrizations.weight_norm`. Make optimizers afterwards.
 *
 * @param name which parameter of the module. Default "weight"
 * @returns the module
 * @throws OptError BAD_ARGUMENT for a name that is no parameter, and an axis that is not there; BAD_STATE for a parameter that is computed
 * @example
 * const layer = weightNorm(new Linear(4, 2));
 * layer.stateDict(); // bias, parametrizations.weight.original0 [2, 1], parametrizations.weight.original1 [2, 4]
 */
export function weightNorm<M extends Module>(module: M, name = "weight", options: WeightNormOptions = {}): M {
  const where = "weightNorm";
  const weight = parameterOf(where, module, name);
  checkOptions(where, options, { axis: "any" });
  const { axis = 0 } = options;
  const rank = weight.shape.length;
  const isAxis = axis === null || (Number.isInteger(axis) && axis >= -rank && axis < rank);
  check(isAxis, "BAD_ARGUMENT", where, () => `axis must be null or one of [${weight.shape}], got ${show(axis)}.`);
  const along = axis === null ? null : axis < 0 ? axis + rank : axis;
  const trained = (value: Tensor) => {
    value.isParameter = true;
    value.requiresGrad = weight.requiresGrad;
    return keep(value);
  };
  const originals = tidy(() => ({
    original0: trained(lengths(weight.detach(), along).to(weight.dtype).clone()),
    original1: trained(weight.detach().clone()),
  }));
  return parametrize(module, name, {
    originals,
    compute: ({ original0, original1 }) =>
      tidy(() => {
        const [g, v] = [original0 as Tensor, original1 as Tensor];
        const compute = v.dtype === "f64" ? "f64" : "f32";
        const wide = v.to(compute);
        return wide.mul(g.to(compute).div(lengths(wide, along))).to(v.dtype);
      }),
  });
}

/** Over all axes but one, which stays. */
function lengths(x: Tensor, axis: number | null): Tensor {
  if (axis === null) return norm(x);
  const others = [...x.shape.keys()].filter((i) => i !== axis);
  return norm(x, 2, others, true);
}
