/** Names each module of the reference as users import it: `core/src/schedules` is `@opt/core/schedules`. */
import { Converter, ReflectionKind } from "typedoc";

/** @param {import("typedoc").Application} app */
export function load(app) {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_context, reflection) => {
    if (reflection.kind === ReflectionKind.Module)
      reflection.name = `@opt/${reflection.name.replace(/\/src(?=\/|$)/, "")}`;
  });
}
