/** Functions by definition: what tests, tables and documentation know of them follows. */
import { tidy } from "../device/scope";
import { checkTensor, checkTensors } from "./check-tensor";
import type { FunctionDefinition, PrimitiveDefinition } from "./definition";

/** Gives a tensor, a list of tensors or an object of them. */
type Composed = (...given: never[]) => object;

/** A function that composes ops. @returns it. It frees what it makes on its way, and throws OptError BAD_ARGUMENT for what is no tensor */
export function defineFunction<Call extends Composed>(definition: FunctionDefinition, call: Call): Call {
  const { name, tensors = ["..."], isList = false, between = [] } = definition;
  const composed = (...given: readonly unknown[]) => {
    if (isList) checkTensors(name, given[0]);
    else for (let i = 0; i < tensors.length; i++) checkTensor(name, given[i === 0 ? 0 : i + between.length], "abc"[i]!);
    return tidy(() => call(...(given as never[])));
  };
  return Object.assign(composed as unknown as Call, { definition });
}

/** A function that checks its operands and launches its kernels itself. @returns it */
export function definePrimitive<Call extends object>(definition: PrimitiveDefinition, call: Call): Call {
  return Object.assign(call, { definition });
}
