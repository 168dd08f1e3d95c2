/* Rounds float32 numbers to float16, in integers, one pass over memory.

   The same, bit by bit, as `at_random.py`, which explains it. */

#include <stdint.h>
#include <string.h>

#define WIDTH 32 /* random words of a block; each has bits for two numbers */

static inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint32_t random_word(uint32_t x, uint32_t key) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= key;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

static inline uint16_t to_half(float x, uint32_t noise, uint32_t beyond) {
  uint32_t bits = bits_of(x), size = bits & 0x7fffffffu;
  uint32_t shift = size < 0x38800000u ? 0x38800000u : 0;
  uint32_t base = shift ? 0x38800000u : 0x38000000u;
  uint32_t code = (bits_of(float_of(size) + float_of(shift)) + noise - base) >> 13;
  code = code > 0x7bffu ? beyond : code;
  code = size == 0x7f800000u ? 0x7c00u : code;
  code = size > 0x7f800000u ? 0x7e00u : code;
  return (uint16_t)(code | (bits >> 16 & 0x8000u));
}

static inline void round_block(const float *restrict x, uint16_t *restrict out,
                               uint32_t counter, uint32_t key, uint32_t beyond) {
  uint32_t words[WIDTH];
  for (int i = 0; i < WIDTH; i++) words[i] = random_word(counter + i, key);
  for (int i = 0; i < WIDTH; i++) out[i] = to_half(x[i], words[i] & 0x1fff, beyond);
  for (int i = 0; i < WIDTH; i++)
    out[WIDTH + i] = to_half(x[WIDTH + i], words[i] >> 19, beyond);
}

void round_at_random(const float *restrict x, uint16_t *restrict out, int64_t count,
                     uint32_t counter, uint32_t key, uint32_t beyond) {
  int64_t i = 0;
  for (; i + 2 * WIDTH <= count; i += 2 * WIDTH, counter += WIDTH)
    round_block(x + i, out + i, counter, key, beyond);
  if (i < count) {
    float last[2 * WIDTH] = {0};
    uint16_t made[2 * WIDTH];
    memcpy(last, x + i, (count - i) * sizeof *last);
    round_block(last, made, counter, key, beyond);
    memcpy(out + i, made, (count - i) * sizeof *made);
  }
}
