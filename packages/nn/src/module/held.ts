/** Properties that hold parameters go on holding them: values in their place would drop out of training and of the state unseen. */
import { check, markReplaced, show, Tensor } from "@opt/core";
import { isPersistent, markPersistent } from "./buffer";

/**
 * Lets a module's properties that hold a parameter take only parameters, or null where it is not needed.
 * A setter then throws OptError BAD_ARGUMENT.
 */
export function holdParameters(module: object, needed: readonly string[] = []): void {
  const where = module.constructor.name;
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(module))) {
    const { value, configurable = false, writable = false } = property;
    if (!configurable || !writable || !(value instanceof Tensor)) continue;
    if (isParameter(value))
      Object.defineProperty(module, name, held(`${where}.${name}`, value, !needed.includes(name)));
    else if (isPersistent(value) === false) Object.defineProperty(module, name, outOfState(value));
  }
}

/** Whether it is a tensor that requires a gradient, or did before it was frozen. Others are buffers. */
export function isParameter(value: unknown): value is Tensor {
  return value instanceof Tensor && (value.isParameter === true || value.requiresGrad);
}

/** Of a property whose buffer is out of the state: so is the next one, unless `buffer` says otherwise. */
function outOfState(first: Tensor): PropertyDescriptor {
  return property(first, (next) => {
    const isBuffer = next instanceof Tensor && !isParameter(next);
    return isBuffer && isPersistent(next) === undefined ? markPersistent(next, false) : next;
  });
}

function held(where: string, first: Tensor, mayBeNull: boolean): PropertyDescriptor {
  return property(first, (next, value) => {
    const fits = isParameter(next);
    const rule = `a parameter${mayBeNull ? " or null" : ""}`;
    check(
      fits || (mayBeNull && next === null),
      "BAD_ARGUMENT",
      where,
      () =>
        `must be ${rule}, got ${next instanceof Tensor ? "a buffer, which never required a gradient" : show(next)}.`,
      `Write new values with ${where.split(".").at(-1)}.set(values), or assign parameter(values).`,
    );
    if (value instanceof Tensor && value !== next) markReplaced(value, fits ? next : null);
    return next;
  });
}

/** @param taken what the property holds once `next` was written in the place of `value` */
function property(first: Tensor, taken: (next: unknown, value: unknown) => unknown): PropertyDescriptor {
  let value: unknown = first;
  return {
    configurable: true,
    enumerable: true,
    get: () => value,
    set(next: unknown) {
      value = taken(next, value);
    },
  };
}
