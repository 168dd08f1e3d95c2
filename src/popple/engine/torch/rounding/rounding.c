/* Rounds float32 numbers to float16, one pass over memory.

   The same, bit by bit, as `at_random.py`, which explains it. */

#include <stdint.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

#define WIDTH 32      /* random words of a block; each has bits for two numbers */
#define SPARE 0x1fffu /* bits of a float32's fraction that a float16 has not */
#define INFINITE 0x7f800000u
#define NO_NUMBER 0x7fc00000u
#define SMALLEST_NORMAL 0x38800000u /* 2**-14 */
#define TOO_LARGE 0x47800000u       /* 2**16 */

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

/* A float32 that float16 has: its neighbour on one side or the other. */
static inline float neighbour(float x, uint32_t noise, uint32_t beyond) {
  uint32_t bits = bits_of(x), size = bits & 0x7fffffffu;
  float shift = size < SMALLEST_NORMAL ? float_of(SMALLEST_NORMAL) : 0.0f;
  uint32_t sum = bits_of(float_of(size) + shift) + noise;
  uint32_t code = bits_of(float_of(sum & ~SPARE) - shift);
  code = code >= TOO_LARGE ? beyond : code;
  code = size == INFINITE ? INFINITE : code;
  code = size > INFINITE ? NO_NUMBER : code;
  return float_of(code | (bits & 0x80000000u));
}

/* A number that is a float16 already, as one. */
static inline uint16_t half_of(float x) {
  uint32_t bits = bits_of(x), size = bits & 0x7fffffffu;
  float shift = size < SMALLEST_NORMAL ? float_of(SMALLEST_NORMAL) : 0.0f;
  uint32_t base = shift ? SMALLEST_NORMAL : 0x38000000u;
  uint32_t code = (bits_of(float_of(size) + shift) - base) >> 13;
  code = size == INFINITE ? 0x7c00u : code;
  code = size > INFINITE ? 0x7e00u : code;
  return (uint16_t)(code | (bits >> 16 & 0x8000u));
}

static inline void store_halves(const float *restrict x, uint16_t *restrict out) {
#if defined(__AVX512F__)
  for (int i = 0; i < WIDTH; i += 16)
    _mm256_storeu_si256((__m256i *)(out + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(x + i), 0));
#elif defined(__F16C__)
  for (int i = 0; i < WIDTH; i += 8)
    _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
#else
  for (int i = 0; i < WIDTH; i++) out[i] = half_of(x[i]);
#endif
}

static inline void round_block(const float *restrict x, uint16_t *restrict out,
                               uint32_t counter, uint32_t key, uint32_t beyond) {
  uint32_t words[WIDTH];
  float near[WIDTH];
  for (int i = 0; i < WIDTH; i++) words[i] = random_word(counter + i, key);
  for (int i = 0; i < WIDTH; i++) near[i] = neighbour(x[i], words[i] & SPARE, beyond);
  store_halves(near, out);
  for (int i = 0; i < WIDTH; i++)
    near[i] = neighbour(x[WIDTH + i], words[i] >> 19, beyond);
  store_halves(near, out + WIDTH);
}

void round_at_random(const float *restrict x, uint16_t *restrict out, int64_t count,
                     uint32_t counter, uint32_t key, int gives_nan, int num_threads) {
  uint32_t beyond = gives_nan ? NO_NUMBER : INFINITE;
  int64_t num_blocks = count / (2 * WIDTH), rest = count % (2 * WIDTH);
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1)
  for (int64_t i = 0; i < num_blocks; i++)
    round_block(x + 2 * WIDTH * i, out + 2 * WIDTH * i, counter + WIDTH * (uint32_t)i,
                key, beyond);
  if (rest) {
    float last[2 * WIDTH] = {0};
    uint16_t made[2 * WIDTH];
    memcpy(last, x + count - rest, rest * sizeof *last);
    round_block(last, made, counter + WIDTH * (uint32_t)num_blocks, key, beyond);
    memcpy(out + count - rest, made, rest * sizeof *made);
  }
}
