/** The multivariate normal distribution. */
import { randn } from "../create";
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { cholesky, flip } from "../functions";
import { matmul, squeeze, transpose, unsqueeze } from "../ops";
import { inverseOfTriangle } from "../ops/linear-algebra/triangle";
import { diagonalOf } from "../ops/shape/diagonals";
import type { Tensor } from "../tensor/tensor";
import { broadcastShapes, type Shape, showShape } from "../values/shape";
import { lowerCholesky, realVector, symmetricMatrix } from "./constraints";
import { checkFloats, DISTRIBUTION_OPTIONS, Distribution, type DistributionOptions, expandedTo } from "./distribution";

/** One of the matrices, [..., n, n]. */
export interface MultivariateNormalOptions extends DistributionOptions {
  /** Symmetric and positive definite. */
  readonly covarianceMatrix?: Tensor;
  /** The inverse of the covariance. */
  readonly precisionMatrix?: Tensor;
  /** The lower triangle L of the covariance L transpose(L). */
  readonly scaleTril?: Tensor;
}

type MatrixName = Exclude<keyof MultivariateNormalOptions, keyof DistributionOptions>;

const OPTIONS = { ...DISTRIBUTION_OPTIONS, covarianceMatrix: "any", precisionMatrix: "any", scaleTril: "any" } as const;

/**
 * Vectors of n numbers, of which the density is exp(-(x - loc)^T P (x - loc) / 2) / sqrt((2 pi)^n det C), with the covariance C and
 * its inverse P. Float32 or float64.
 *
 * @throws OptError BAD_ARGUMENT for a matrix that is not positive definite, or unless one matrix is given; BAD_SHAPE, BAD_DTYPE
 * @example
 * const pair = new MultivariateNormal(tensor([0, 0]), { covarianceMatrix: tensor([[2, 1], [1, 2]]) });
 * pair.logProb(pair.sample([100])).shape; // [100]
 */
export class MultivariateNormal extends Distribution {
  readonly loc: Tensor;
  /** L before it is stretched over the batch. */
  readonly #lower: Tensor;
  readonly #given: MatrixName;
  readonly #matrix: Tensor;

  constructor(loc: Tensor, options: MultivariateNormalOptions) {
    const where = "MultivariateNormal";
    checkOptions(where, options, OPTIONS);
    checkFloats(where, loc, "loc");
    const given = (["covarianceMatrix", "precisionMatrix", "scaleTril"] as const).filter((each) => options[each]);
    const [name = "scaleTril"] = given;
    check(
      given.length === 1,
      "BAD_ARGUMENT",
      where,
      () => `takes one of covarianceMatrix, precisionMatrix and scaleTril, got ${given.join(", ") || "none"}.`,
    );
    const matrix: unknown = options[name];
    checkFloats(where, matrix, name);
    const extent = loc.shape.at(-1);
    const fits = loc.shape.length >= 1 && matrix.shape.at(-1) === extent && matrix.shape.at(-2) === extent;
    check(
      fits,
      "BAD_SHAPE",
      where,
      () => `needs loc [..., n] and ${name} [..., n, n], got ${showShape(loc.shape)} and ${showShape(matrix.shape)}.`,
    );
    const batch = broadcastShapes(where, [loc.shape.slice(0, -1), matrix.shape.slice(0, -2)]);
    super(where, batch, [extent!], options);
    this.loc = expandedTo(loc, [...batch, extent!]);
    this.#given = name;
    this.#matrix = matrix;
    const set = name === "scaleTril" ? lowerCholesky : symmetricMatrix;
    this.checkParameter("loc", this.loc, realVector);
    this.checkParameter(name, matrix, set);
    this.#lower = name === "scaleTril" ? matrix : name === "covarianceMatrix" ? cholesky(matrix) : ofPrecision(matrix);
  }

  get scaleTril(): Tensor {
    return this.#whole("scaleTril", () => this.#lower);
  }
  get covarianceMatrix(): Tensor {
    return this.#whole("covarianceMatrix", () => matmul(this.#lower, this.#lower, { transposeB: true }));
  }
  get precisionMatrix(): Tensor {
    return this.#whole("precisionMatrix", () => {
      const inverse = inverseOfTriangle(this.#lower);
      return matmul(inverse, inverse, { transposeA: true });
    });
  }

  readonly support = realVector;
  override readonly hasRsample = true;
  override get mean(): Tensor {
    return this.loc;
  }
  override get mode(): Tensor {
    return this.loc;
  }
  override get variance(): Tensor {
    return tidy(() => expandedTo(this.#lower.square().sum(-1), this.loc.shape));
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    const { dtype, device } = this.loc;
    return tidy(() => {
      const noise = randn(shape, { dtype, device, ...options });
      return this.loc.add(squeeze(matmul(this.#lower, unsqueeze(noise, -1)), -1));
    });
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => {
      const constant = this.eventShape[0]! * Math.log(2 * Math.PI);
      return this.squaredDistance(value.sub(this.loc)).add(constant).mul(-0.5).sub(this.logDeterminant());
    });
  }

  override entropy(): Tensor {
    return tidy(() => {
      const constant = 0.5 * this.eventShape[0]! * (1 + Math.log(2 * Math.PI));
      return expandedTo(this.logDeterminant().add(constant), this.batchShape);
    });
  }

  expand(batchShape: Shape): MultivariateNormal {
    const loc = expandedTo(this.loc, [...batchShape, ...this.eventShape]);
    return new MultivariateNormal(loc, { [this.#given]: this.#matrix, ...this.options });
  }

  /** @internal Of L, without the batch's axes that only loc has: half that of the covariance. */
  logDeterminant(): Tensor {
    return diagonalOf(this.#lower).log().sum(-1);
  }

  /** @internal x^T P x of vectors x [..., n]. */
  squaredDistance(x: Tensor): Tensor {
    return squeeze(this.solved(unsqueeze(x, -1)), -1)
      .square()
      .sum(-1);
  }

  /** @internal The inverse of L times matrices. */
  solved(x: Tensor): Tensor {
    return matmul(inverseOfTriangle(this.#lower), x);
  }

  /** What was given, or what is computed, for the whole batch. */
  #whole(name: MatrixName, compute: () => Tensor): Tensor {
    const shape = [...this.batchShape, ...this.eventShape, ...this.eventShape];
    return tidy(() => expandedTo(this.#given === name ? this.#matrix : compute(), shape));
  }
}

/** L of the covariance, from Cholesky's factor of the precision turned by half a turn. */
function ofPrecision(precision: Tensor): Tensor {
  return tidy(() => inverseOfTriangle(transpose(flip(cholesky(flip(precision, [-2, -1])), [-2, -1]))));
}
