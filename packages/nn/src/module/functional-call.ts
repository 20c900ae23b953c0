/** A module called with other tensors in place of its own. */
import { check, checkTensor, show, type Tensor } from "@opt/core";
import { isModule, type Module } from "./module";
import { substituteTensors } from "./replace";

/**
 * `model.forward(...inputs)` with the given tensors in place of those of the same names: PyTorch's `torch.func.functional_call`. Gradients
 * flow to the given tensors, also second ones. Names are those of `namedTensors()` and `namedBuffers()`; what is not named stays. One name of tied tensors
 * replaces all of them. Afterwards the module is as before, also if forward throws.
 *
 * @throws OptError BAD_ARGUMENT for what is no module or no tensor, for a name that the module lacks, and for two tensors in place of a tied one
 * @example
 * const model = new Linear(2, 1);
 * const [x, y] = [rand([4, 2]), rand([4, 1])];
 * const weights = model.parameters();
 * const gradients = grad(mseLoss(model.forward(x), y), weights, { createGraph: true });
 * const adapted = model.namedParameters().map(([name, weight], i) => [name, weight.sub(gradients[i]!.mul(0.1))]);
 * mseLoss(functionalCall(model, Object.fromEntries(adapted), x), y).backward(); // one step of MAML
 */
export function functionalCall<M extends Module>(
  model: M,
  parameters: Readonly<Record<string, Tensor>>,
  ...inputs: Parameters<M["forward"]>
): ReturnType<M["forward"]> {
  const where = "functionalCall";
  check(isModule(model), "BAD_ARGUMENT", where, () => `the model must be a module, got ${show(model)}.`);
  const isRecord = typeof parameters === "object" && parameters !== null;
  check(isRecord, "BAD_ARGUMENT", where, () => `needs tensors by name, got ${show(parameters)}.`, "{ name: tensor }");
  const own = new Map([...model.namedTensors(), ...model.namedBuffers()]);
  const given = new Map<Tensor, Tensor>();
  for (const [name, tensor] of Object.entries(parameters)) {
    checkTensor(where, tensor, name);
    const mine = own.get(name);
    check(
      mine !== undefined,
      "BAD_ARGUMENT",
      where,
      () => `the module must have each name, got ${name}.`,
      "namedTensors() and namedBuffers() list its names.",
    );
    const other = given.get(mine) ?? tensor;
    check(
      other === tensor,
      "BAD_ARGUMENT",
      where,
      () => `tied tensors must get one tensor, got another one for ${name}.`,
      "Name one of them.",
    );
    given.set(mine, tensor);
  }
  const restore = substituteTensors(model.modules(), (tensor) => given.get(tensor) ?? tensor);
  try {
    return model.forward(...(inputs as never[])) as ReturnType<M["forward"]>;
  } finally {
    restore();
  }
}
