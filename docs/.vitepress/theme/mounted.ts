/** Whether the page's script has taken over: until then a button of the served HTML does nothing, and is disabled. */
import { onMounted, type Ref, ref } from "vue";

export function useMounted(): Readonly<Ref<boolean>> {
  const isMounted = ref(false);
  onMounted(() => {
    isMounted.value = true;
  });
  return isMounted;
}
