/** The most common check: a value must be what a rule says. */
import { OptError } from "./errors";
import { show } from "./show";

/**
 * Throws BAD_ARGUMENT, "`name` must be `rule`, got `value`.", unless `holds`. It takes words instead of closures, because each step and
 * op calls it, and garbage pushes data out of the caches.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function checkValue(
  holds: unknown,
  where: string,
  name: string,
  rule: string,
  value: unknown,
  advice = "",
): asserts holds {
  if (!holds) throw new OptError("BAD_ARGUMENT", where, `${name} must be ${rule}, got ${show(value)}.`, advice);
}
