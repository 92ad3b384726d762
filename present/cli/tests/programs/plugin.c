/* A library that is loaded at run time. */
static volatile long sink;

__attribute__((noinline)) static void inside(void (*burn)(long), long ms) {
  burn(ms);
  sink++;
}

void plugin(void (*burn)(long)) {
  inside(burn, 50);
  sink++;
}

void plugin_once(void (*burn)(long)) {
  inside(burn, 1);
  sink++;
}
