/** Properties that hold parameters go on holding them: values in their place would drop out of training and of the state unseen. */
import { check, markReplaced, show, Tensor } from "@opt/core";

/** Every parameter that was held by a property: a frozen one may be shared too. */
const parameters = new WeakSet<Tensor>();

/**
 * Lets a module's properties that hold a tensor which requires a gradient take only such tensors, or null where it is not needed.
 * A setter then throws OptError BAD_ARGUMENT.
 */
export function holdParameters(module: object, needed: readonly string[] = []): void {
  const where = module.constructor.name;
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(module))) {
    const { value, configurable = false, writable = false } = property;
    if (!(value instanceof Tensor && value.requiresGrad)) continue;
    parameters.add(value);
    if (configurable && writable) {
      Object.defineProperty(module, name, held(`${where}.${name}`, value, !needed.includes(name)));
    }
  }
}

/** Whether a property held it as a parameter, also where it is frozen now. */
export function isParameter(tensor: Tensor): boolean {
  return parameters.has(tensor);
}

/** Another tensor in a parameter's place may be held where it was, frozen or not. */
export function succeed(parameter: Tensor, by: Tensor): void {
  if (parameters.has(parameter)) parameters.add(by);
}

function held(where: string, first: Tensor, mayBeNull: boolean): PropertyDescriptor {
  let value: unknown = first;
  return {
    configurable: true,
    enumerable: true,
    get: () => value,
    set(next: unknown) {
      const fits = next instanceof Tensor && (next.requiresGrad || parameters.has(next));
      const rule = `a parameter${mayBeNull ? " or null" : ""}`;
      check(
        fits || (mayBeNull && next === null),
        "BAD_ARGUMENT",
        where,
        () => `must be ${rule}, got ${next instanceof Tensor ? "a tensor that requires no gradient" : show(next)}.`,
        `Write new values with ${where.split(".").at(-1)}.set(values), or assign parameter(values).`,
      );
      if (fits) parameters.add(next);
      if (value instanceof Tensor && value !== next) markReplaced(value, fits ? next : null);
      value = next;
    },
  };
}
