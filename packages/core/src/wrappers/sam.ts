/** SAM: gradients of the worst point nearby. */
import { runsOnce } from "../device/host-code";
import { keep, tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { check, OptError } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { isPromise } from "../host/synchronous";
import { clone, copyInto, elementwise } from "../ops";
import type { BaseOptions } from "../optimizer/algorithm";
import { checkOneDevice } from "../optimizer/gradients/clip";
import { totalNorm } from "../optimizer/gradients/norm";
import type { Group } from "../optimizer/group";
import type { Around } from "../optimizer/plan";
import { noGrad, recordingSetTo, whileRecordingIs } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { checkFullPrecision } from "./full-precision";
import { OptimizerWrapper, type Wrappable } from "./wrapper";

const WHERE = "SAM";

export interface SAMOptions {
  /** How far away the worst point is looked for, above 0. Default 0.05. */
  readonly rho?: number;
  /** Measures the distance relative to each weight, as ASAM. Default false. */
  readonly adaptive?: boolean;
}

/**
 * Sharpness-aware minimization: steps an optimizer by the gradients at the worst point near the parameters.
 *
 *     e = rho g / (|g| + 1e-12)          adaptive: e = rho param^2 g / (|param g| + 1e-12)          step by the gradients at param + e
 *
 * The norm is over all parameters, of whole ones where ranks have parts. `step(closure)` calls the closure twice, and returns the first
 * loss. The closure computes the loss and calls backward. Where ranks average gradients it awaits `parallel.sync()`: then await the step.
 * It has no state of its own. Parameters are f32 or f64, with dense gradients.
 * Sources: Foret et al., "Sharpness-Aware Minimization" (2020); Kwon et al., "ASAM" (2021).
 *
 * @throws OptError BAD_ARGUMENT for what is no optimizer, or options out of range; UNSUPPORTED for 16-bit and complex parameters
 * @example
 * const w = parameter([1, 2]);
 * const optimizer = new SAM(new AdamW([w]), { rho: 0.05 });
 * const loss = optimizer.step(() => {
 *   optimizer.zeroGrad();
 *   const loss = w.mul(w).sum();
 *   loss.backward();
 *   return loss;
 * });
 */
export class SAM<OwnGroup extends Group<BaseOptions>> extends OptimizerWrapper<OwnGroup> {
  readonly #rho: number;
  readonly #adaptive: boolean;
  #isStepping = false;

  constructor(optimizer: Wrappable<OwnGroup>, options: SAMOptions = {}) {
    checkOptions(WHERE, options, { rho: "number", adaptive: "boolean" });
    const { rho = 0.05, adaptive = false } = options;
    checkValue(rho > 0 && Number.isFinite(rho), WHERE, "rho", "a finite number above 0", rho, "The default is 0.05.");
    super(WHERE, [optimizer]);
    checkFullPrecision(WHERE, this.parameters());
    this.#rho = rho;
    this.#adaptive = adaptive;
  }

  /** @internal */
  override get needsClosure(): boolean {
    return true;
  }

  /**
   * @returns what the first call of `closure` returned, or a promise of it, as the closure does
   * @throws OptError BAD_ARGUMENT without a closure; BAD_STATE before an earlier step has ended; UNSUPPORTED for an asynchronous closure in
   * a compiled function
   */
  override step(): void;
  override step<Loss>(closure: () => Loss): Loss;
  override step<Loss>(closure?: () => Loss): Loss | undefined {
    const isFunction = typeof closure === "function";
    check(isFunction, "BAD_ARGUMENT", WHERE, () => "step() needs a closure, got none.", "It calls backward.");
    check(!this.#isStepping, "BAD_STATE", WHERE, () => "the last step has not ended.", "Await step(closure).");
    const loss = whileRecordingIs(true, closure);
    if (isPromise(loss)) {
      runsOnce(WHERE, "wait for a closure", "Compile what the closure calls, and step outside.");
      return this.#stepLater(loss, closure) as Loss;
    }
    const restore = this.#ascend();
    try {
      this.zeroGrad();
      recordingSetTo(`${WHERE}.step`, true, closure);
    } finally {
      restore();
    }
    super.step();
    return loss;
  }

  /** The same where ranks average gradients in the closure. */
  async #stepLater(first: Promise<unknown>, closure: () => unknown): Promise<unknown> {
    this.#isStepping = true;
    try {
      const loss = await first;
      const restore = this.#ascend();
      try {
        this.zeroGrad();
        await closure();
      } finally {
        restore();
      }
      super.step();
      return loss;
    } finally {
      this.#isStepping = false;
    }
  }

  /** Moves the parameters to the worst point. Returns what moves them back. */
  #ascend(): () => void {
    const before: (readonly [Tensor, Tensor])[] = [];
    const restore = () => {
      for (const [param, value] of before) {
        copyInto(value, param);
        value.dispose();
      }
    };
    try {
      noGrad(() => this.#move(before));
    } catch (error) {
      restore();
      throw error;
    }
    return restore;
  }

  /** @param before gets the values before */
  #move(before: (readonly [Tensor, Tensor])[]): void {
    const moved = this.groups.flatMap(({ params, maximize }) =>
      params.flatMap((param) =>
        param.grad === null ? [] : [{ param, grad: param.grad, rho: maximize ? -this.#rho : this.#rho }],
      ),
    );
    checkFullPrecision(
      WHERE,
      moved.map(({ param }) => param),
    );
    if (moved.length === 0) return;
    const grads = moved.map(({ grad }) => grad);
    check(
      !grads.some(({ sparse }) => sparse),
      "UNSUPPORTED",
      WHERE,
      () => "gradients must be dense, got row-sparse.",
      "Use toDense().",
    );
    checkOneDevice(WHERE, grads);
    for (const { param } of moved) before.push([param, keep(clone(param))]);
    tidy(() => {
      const scaled = moved.map(({ param, grad }) => {
        if (!this.#adaptive) return grad;
        const product = param.mul(grad);
        product.placement = param.placement; // the norm is that of the whole
        return product;
      });
      const factor = elementwise("div", [1, totalNorm(scaled, 2).add(1e-12)]);
      moved.forEach(({ param, rho }, i) => {
        const direction = this.#adaptive ? scaled[i]!.mul(param) : scaled[i]!;
        copyInto(param.add(direction.mul(factor).mul(rho).to(param.dtype)), param);
      });
    });
  }

  /** @internal A step by gradients that are there already would not be SAM's. */
  override apply(_around: Around): void {
    throw new OptError(
      "UNSUPPORTED",
      WHERE,
      "a loss scaler has no closure to call twice.",
      "Train in bf16, or call step(closure).",
    );
  }

  /** @internal */
  override planned(_around: Around): () => void {
    throw new OptError("UNSUPPORTED", WHERE, "another wrapper has no closure to call twice.", "Put SAM outside of it.");
  }

  /** @internal */
  protected override update(around: Around): void {
    noGrad(() => tidy(() => super.planned(around)()));
  }
}
