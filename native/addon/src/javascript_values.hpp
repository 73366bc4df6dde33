#pragma once

#define NAPI_VERSION 8
#include <node_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tds {

/**
 * Converts values between C++ and JavaScript, on the JavaScript thread. Each function returns false when a JavaScript
 * exception is pending.
 */
namespace js {

void throw_error(napi_env env, const char * message);
bool check(napi_env env, napi_status status);

bool get_string(napi_env env, napi_value value, std::string & text);
/** Reads an Int32Array. `numbers` points into its memory. */
bool get_numbers(napi_env env, napi_value array, const int32_t *& numbers, size_t & count);
/** Reads the id of a plan or of texts: a number of 0 or more. */
bool get_id(napi_env env, napi_value value, uint64_t & id);
bool get_string_property(napi_env env, napi_value object, const char * name, std::string & text);
bool get_integer_property(napi_env env, napi_value object, const char * name, int32_t & number);
bool get_number_property(napi_env env, napi_value object, const char * name, double & number);
bool get_boolean_property(napi_env env, napi_value object, const char * name, bool & flag);

bool set_number(napi_env env, napi_value object, const char * name, double number);
bool set_boolean(napi_env env, napi_value object, const char * name, bool flag);
bool set_string(napi_env env, napi_value object, const char * name, const std::string & text);

/** Sets a typed array with a copy of the data. */
template <typename Number>
bool set_array(napi_env env, napi_value object, const char * name, napi_typedarray_type type,
               const std::vector<Number> & data) {
    void * memory = nullptr;
    napi_value buffer, array;
    if (!check(env, napi_create_arraybuffer(env, data.size() * sizeof(Number), &memory, &buffer))) return false;
    std::copy(data.begin(), data.end(), static_cast<Number *>(memory));
    return check(env, napi_create_typedarray(env, type, data.size(), buffer, 0, &array)) &&
           check(env, napi_set_named_property(env, object, name, array));
}

}  // namespace js

}  // namespace tds
