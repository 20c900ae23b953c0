// Derivatives of ten functions beside torch.func's, with their own gradients and second gradients.
import { type CallInput, Random, storedSuite, type TorchCall } from "@opt/testkit";
import { cos, cumsum, exp, logSoftmax, logsumexp, matmul, pow, sigmoid, sin, softplus, tanh } from "../functions";
import type { Tensor } from "../tensor/tensor";
import { hessian, hvp, jacobian, jvp, vjp } from "./derivatives";

type Two = (a: Tensor, b: Tensor) => Tensor;

/** Of a vector [3] and a matrix [3, 3]. */
const FUNCTIONS: readonly (readonly [name: string, torch: string, ours: Two])[] = [
  ["a square", "a * a + (b * b).sum(0)", (a, b) => a.mul(a).add(b.mul(b).sum(0))],
  ["a layer", "torch.tanh(b @ a)", (a, b) => tanh(matmul(b, a))],
  ["two layers", "b @ torch.sigmoid(b @ a)", (a, b) => matmul(b, sigmoid(matmul(b, a)))],
  ["waves", "torch.sin(a) * torch.exp(b)", (a, b) => sin(a).mul(exp(b))],
  ["a power", "(a * a + 1) ** b", (a, b) => pow<Tensor>(a.mul(a).add(1), b)],
  ["a likelihood", "torch.log_softmax(b @ a, 0)", (a, b) => logSoftmax(matmul(b, a), 0)],
  ["a sum of exponentials", "torch.logsumexp(b + a, 1)", (a, b) => logsumexp(b.add(a), 1)],
  ["running sums", "torch.cumsum(b * a, 1)", (a, b) => cumsum(b.mul(a), 1)],
  ["a quotient", "a / (1 + b * b).mean(1)", (a, b) => a.div(b.mul(b).add(1).mean(1))],
  ["a softplus", "F.softplus(b * a)", (a, b) => softplus(b.mul(a))],
];

const random = new Random(5);
const drawn = (shape: readonly number[]): CallInput => ({
  values: Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 2 * random.uniform() - 1),
  shape,
  dtype: "f64",
  requiresGrad: true,
});
const one = (of: readonly unknown[]) => of.flat(2) as Tensor[];

const calls = FUNCTIONS.flatMap(([name, torch, f]): TorchCall[] => {
  const [inputs, along] = [
    [drawn([3]), drawn([3, 3])],
    [drawn([3]), drawn([3, 3])],
  ];
  const python = `f = lambda a, b: ${torch};;s = lambda a, b: (${torch}).square().sum()`;
  const total: Two = (a, b) => f(a, b).square().sum();
  const call = (what: string, code: string, run: TorchCall["run"], given = inputs): TorchCall => ({
    name: `${what} of ${name}`,
    inputs: given,
    code: `${python};;${code}`,
    run,
    second: true,
  });
  return [
    call("jvp", "torch.func.jvp(f, (a, b), (c, d))", (a, b, c, d) => one(jvp(f, [a!, b!], [c!, d!])), [
      ...inputs,
      ...along,
    ]),
    call("vjp", "y, back = torch.func.vjp(f, a, b);;[y, *back(torch.cos(y.detach()))]", (a, b) =>
      one(vjp(f, [a!, b!], cos(f(a!, b!).detach()))),
    ),
    call("jacobian", "torch.func.jacrev(f, (0, 1))(a, b)", (a, b) => one(jacobian(f, [a!, b!]))),
    call("hessian", "[h for row in torch.func.hessian(s, (0, 1))(a, b) for h in row]", (a, b) =>
      one(hessian(total, [a!, b!])),
    ),
    call(
      "hvp",
      "y, (u, v) = torch.autograd.functional.hvp(s, (a, b), (c, d), create_graph=True);;[y, u, v]",
      (a, b, c, d) => one(hvp(total, [a!, b!], [c!, d!])),
      [...inputs, ...along],
    ),
  ];
});

await storedSuite(new URL("../../testing/goldens/derivatives.json", import.meta.url), calls);
